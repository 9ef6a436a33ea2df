package openwire

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// The Java classes that errors have on the wire. Every Java client has them
// (OpenWire 4.9), but for the one of ActiveMQ's own.
const (
	classJMS                  = "javax.jms.JMSException"
	classInvalidClientID      = "javax.jms.InvalidClientIDException"
	classInvalidDestination   = "javax.jms.InvalidDestinationException"
	classInvalidSelector      = "javax.jms.InvalidSelectorException"
	classResourceAllocation   = "javax.jms.ResourceAllocationException"
	classRolledBack           = "javax.jms.TransactionRolledBackException"
	classXA                   = "javax.transaction.xa.XAException"
	classSecurity             = "java.lang.SecurityException"
	classIllegalState         = "java.lang.IllegalStateException"
	classIllegalJMSState      = "javax.jms.IllegalStateException"
	classIllegalArgument      = "java.lang.IllegalArgumentException"
	classIO                   = "java.io.IOException"
	classNoDestination        = "org.apache.activemq.DestinationDoesNotExistException"
	maxExceptionTextBytes     = 1000 // versions 1 and 10 of the reference cut at 1024 characters
	exceptionTextContinuation = "..."
)

// classes says which Java class each kind of failure is, where a command has no
// class of its own for it (OpenWire 14).
var classes = []struct {
	kind  error
	class string
}{
	{message.ErrNotFound, classJMS},
	{message.ErrExists, classJMS},
	{message.ErrInvalid, classJMS},
	{message.ErrState, classJMS},
	{message.ErrDenied, classSecurity},
	{message.ErrOverLimit, classResourceAllocation},
	{message.ErrUnavailable, classJMS},
	{message.ErrCorrupt, classIO},
}

// A javaError is an error whose Java class is decided.
type javaError struct {
	class string
	err   error
}

func (e *javaError) Error() string { return e.err.Error() }
func (e *javaError) Unwrap() error { return e.err }

// exception gives err a Java class.
func exception(class string, err error) error { return &javaError{class, err} }

// exceptionf makes an error with a Java class.
func exceptionf(class, format string, args ...any) error {
	return &javaError{class, fmt.Errorf(format, args...)}
}

// exceptionIf gives err the class if it is of the kind and has none yet.
func exceptionIf(kind error, class string, err error) error {
	if _, ok := errors.AsType[*javaError](err); !ok && errors.Is(err, kind) {
		return exception(class, err)
	}
	return err
}

// throwable is err as Java is to see it.
func throwable(err error) *wire.Throwable {
	class := classJMS
	if own, ok := errors.AsType[*javaError](err); ok {
		class = own.class
	} else if errors.Is(err, broker.ErrTooMany) { // a limit with a class of its own
		class = classIllegalJMSState
	} else {
		for _, c := range classes {
			if errors.Is(err, c.kind) {
				class = c.class
				break
			}
		}
	}
	return wire.NewThrowable(class, shortened(strings.ToValidUTF8(err.Error(), "\ufffd")))
}

// shortened cuts a text that some peers could not be sent.
func shortened(s string) string {
	if len(s) <= maxExceptionTextBytes {
		return s
	}
	s = s[:maxExceptionTextBytes]
	for len(s) > 0 && !utf8.ValidString(s[max(len(s)-utf8.UTFMax, 0):]) {
		s = s[:len(s)-1]
	}
	return s + exceptionTextContinuation
}
