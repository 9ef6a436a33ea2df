package wire

import "fmt"

// A DataStructure is anything with a type code that can stand in a frame or be
// a value in one. The implementations are the structs of this package. A nil
// interface is the null object; a nil pointer inside an interface is not
// allowed.
type DataStructure interface {
	// Code is the type code of the wire.
	Code() byte

	read(r *reader)
	write(w *writer)
}

// A Command is a data structure with a command id: everything that peers send
// each other but WireFormatInfo and the pieces of commands (PartialCommand).
type Command interface {
	DataStructure

	// Base gives access to what all commands have.
	Base() *BaseCommand
}

// A BaseCommand is what all commands begin with.
type BaseCommand struct {
	CommandID        int32 // the sender's counter from 1; 0 for what nobody answers
	ResponseRequired bool  // the receiver must answer with a Response (OpenWire 9.1)
}

// Base returns b itself.
func (b *BaseCommand) Base() *BaseCommand { return b }

func (b *BaseCommand) read(r *reader) {
	b.CommandID = r.int32()
	b.ResponseRequired = r.flag()
}

func (b *BaseCommand) write(w *writer) {
	w.int32(b.CommandID)
	w.flag(b.ResponseRequired)
}

// A TransactionID is a *LocalTransactionID or an *XATransactionID.
type TransactionID interface {
	DataStructure
	fmt.Stringer

	// Key is a text that two ids share exactly if they are the same transaction.
	Key() string

	cacheKey() cacheKey
}

// The values of RemoveInfo.LastDeliveredSequenceID that are no sequence
// (OpenWire 10.7).
const (
	LastDeliveredNone    int64 = -1 // the application has seen nothing
	LastDeliveredUnknown int64 = -2
)

// unknownName stands for a value that the table does not name.
func unknownName(typ string, v int8) string { return fmt.Sprintf("%s(%d)", typ, v) }
