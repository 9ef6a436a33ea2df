package jms_test

import (
	"errors"
	"log/slog"

	"github.com/nixiemq/nixie/jms"
)

// What the examples are about, and nobody needs to read.
var (
	errDatabaseDown = errors.New("database down")
	errBusy         = errors.New("busy")
	errNonsense     = errors.New("nonsense")
	quiet           = slog.New(slog.DiscardHandler)
)

func process(*jms.Message) error { return nil }
