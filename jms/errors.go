package jms

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nixiemq/nixie/internal/protocol/openwire/wire"
)

// Kinds of failure; test for them with errors.Is. What a broker says comes as a
// *BrokerError below one of these.
var (
	// ErrClosed: the object, or the connection it belongs to, is closed.
	ErrClosed = errors.New("closed")
	// ErrUnavailable: the broker cannot be reached, or the connection to it broke.
	ErrUnavailable = errors.New("broker unavailable")
	// ErrIllegalState: right call at the wrong time, such as Commit on a session
	// without transactions.
	ErrIllegalState = errors.New("illegal state")
	// ErrInvalidDestination: there can be no such destination, or there is none.
	ErrInvalidDestination = errors.New("invalid destination")
	// ErrInvalidSelector: the selector is not one.
	ErrInvalidSelector = errors.New("invalid selector")
	// ErrInvalidClientID: the client id is missing or in use.
	ErrInvalidClientID = errors.New("invalid client id")
	// ErrSecurity: the broker refuses the user.
	ErrSecurity = errors.New("not allowed")
	// ErrResourceAllocation: a limit of the broker is reached.
	ErrResourceAllocation = errors.New("resource limit")
	// ErrMessageFormat: a value cannot be converted as asked, or a body cannot be read.
	ErrMessageFormat = errors.New("message format")
	// ErrTransactionRolledBack: the transaction did not take place. Roll back and
	// begin anew: its messages come again.
	ErrTransactionRolledBack = errors.New("transaction rolled back")
	// ErrInDoubt: nobody knows whether the commit took place, because the
	// connection broke before its answer. It is ErrTransactionRolledBack too.
	ErrInDoubt = fmt.Errorf("commit in doubt: %w", ErrTransactionRolledBack)
	// ErrInvalidOption: an option of a URI is unknown or has no fitting value.
	ErrInvalidOption = errors.New("invalid option")
	// ErrNoMessage: none came within the time given.
	ErrNoMessage = errors.New("no message")
)

// An Error says which call failed and why.
type Error struct {
	Op   string // what was tried, e.g. "create consumer on queue://ORDERS"
	Kind error  // one of the kinds above; may be nil
	Text string // more about it; may be empty
	Err  error  // what lies below; may be nil
}

// Error is the operation, the text or kind, and what lies below.
func (e *Error) Error() string {
	parts := []string{e.Op}
	switch {
	case e.Text != "":
		parts = append(parts, e.Text)
	case e.Kind != nil && e.Err == nil:
		parts = append(parts, e.Kind.Error())
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return "jms: " + strings.ReplaceAll(strings.Join(parts, ": "), ": jms: ", ": ")
}

// Unwrap gives the kind and what lies below.
func (e *Error) Unwrap() []error {
	var all []error
	if e.Kind != nil {
		all = append(all, e.Kind)
	}
	if e.Err != nil {
		all = append(all, e.Err)
	}
	return all
}

// A BrokerError is an exception that the broker has sent.
type BrokerError struct {
	Class string // of Java, e.g. "javax.jms.InvalidSelectorException"
	Text  string
	Cause *BrokerError // nil: none was sent
}

// Error is the text with its class.
func (e *BrokerError) Error() string {
	if e.Text == "" {
		return e.Class
	}
	return e.Text + " (" + e.Class + ")"
}

// Unwrap gives the cause, and the kind that the class stands for.
func (e *BrokerError) Unwrap() []error {
	var all []error
	if k := kindOfClass(e.Class); k != nil {
		all = append(all, k)
	}
	if e.Cause != nil {
		all = append(all, e.Cause)
	}
	return all
}

// kindOfClass gives the kind of a Java exception. Brokers of 6.x say jakarta where
// others say javax (OpenWire 4.9).
func kindOfClass(class string) error {
	short := class[strings.LastIndexByte(class, '.')+1:]
	return map[string]error{
		"InvalidClientIDException":          ErrInvalidClientID,
		"InvalidDestinationException":       ErrInvalidDestination,
		"DestinationDoesNotExistException":  ErrInvalidDestination,
		"InvalidSelectorException":          ErrInvalidSelector,
		"ResourceAllocationException":       ErrResourceAllocation,
		"TransactionRolledBackException":    ErrTransactionRolledBack,
		"SecurityException":                 ErrSecurity,
		"JMSSecurityException":              ErrSecurity,
		"IllegalStateException":             ErrIllegalState,
		"MessageFormatException":            ErrMessageFormat,
		"TransactionInProgressException":    ErrIllegalState,
		"ConnectionFailedException":         ErrUnavailable,
		"BrokerStoppedException":            ErrUnavailable,
		"ConnectionClosedException":         ErrUnavailable,
		"InactivityIOException":             ErrUnavailable,
		"IOException":                       ErrUnavailable,
		"UnresolvedConnectionInfoException": ErrUnavailable,
		"ConfigurationException":            ErrInvalidOption,
		"JMSRuntimeException":               nil,
	}[short]
}

// brokerError is a throwable of the broker as an error.
func brokerError(t *wire.Throwable) error {
	if t == nil {
		return &BrokerError{Class: "java.lang.Throwable", Text: "the broker gives no reason"}
	}
	e := &BrokerError{Class: t.Class, Text: t.Message.Value}
	if t.Cause != nil {
		e.Cause, _ = brokerError(t.Cause).(*BrokerError)
	}
	return e
}
