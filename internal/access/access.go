// Package access knows who may do what: users with passwords and groups, and
// lists of groups for destinations (spec section 7.8).
//
// It is pure: no clock, no goroutine, no I/O. The protocols ask [Control] who a
// client is, and the broker asks the [Principal] that comes of it what the client
// may do. Its neighbours are message and redelivery, whose map of patterns it
// shares with the policies.
//
// Its laws:
//
//   - What no entry allows is denied (R-XML-30). Entries only ever add.
//   - A nil *Principal may do everything: it stands for the broker itself, and for
//     everybody where nothing is configured (R-XML-31).
//   - How long a wrong password takes to be refused does not depend on the password,
//     nor on whether there is such a user.
package access

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// An Operation is what someone wants to do with a destination.
type Operation uint8

// The operations, by the attributes of an authorizationEntry.
const (
	Read  Operation = iota // consume, browse
	Write                  // send
	Admin                  // create, remove
)

// Everyone in a list of groups stands for everybody, whatever groups they have.
const Everyone = "*"

// Admins is the group whose members may act at the admin listener.
const Admins = "admins"

// Options say who there is and who may do what. They are not changed once in use.
type Options struct {
	Users []User
	// Anonymous lets clients in that give neither name nor password, as
	// AnonymousUser in AnonymousGroup; default false.
	Anonymous                     bool
	AnonymousUser, AnonymousGroup string // default "anonymous", both
	// Authorization says what the groups may do; nil: everybody who is let in may
	// do everything.
	Authorization *Authorization
	// Source is where it was written, "FILE:LINE".
	Source string
}

// A User is someone with a password.
type User struct {
	Name     string
	Password Secret
	Groups   []string
	Source   string // "FILE:LINE"
}

// A Secret does not show itself when it is printed.
type Secret string

// String hides the secret.
func (Secret) String() string { return "(secret)" }

// GoString hides the secret.
func (Secret) GoString() string { return "(secret)" }

// An Authorization lists what groups may do.
type Authorization struct {
	// Entries are in the order of the file. All that match a destination count
	// together (R-XML-30).
	Entries []Entry
	// Default counts for every destination, beside what matches; nil: none.
	Default *Entry
	// Temporary is for temporary destinations; nil: everybody may use them.
	Temporary *Entry
}

// An Entry gives groups rights on the destinations of a pattern.
type Entry struct {
	// Destination is the pattern, no composite; zero in Default and Temporary.
	Destination message.Destination
	// Read, Write and Admin are the groups; Everyone among them is everybody.
	Read, Write, Admin []string
	Source             string // "FILE:LINE"
}

// groups are those that an entry lists for an operation.
func (e *Entry) groups(op Operation) []string {
	switch op {
	case Read:
		return e.Read
	case Write:
		return e.Write
	}
	return e.Admin
}

// verbs are ActiveMQ's words for what is denied.
var verbs = [...]string{Read: "read from", Write: "write to", Admin: "create"}

// A refusal is an error in ActiveMQ's words and no others: people, and programs,
// look for them.
type refusal string

func (r refusal) Error() string { return string(r) }

// Unwrap says what kind of error it is.
func (refusal) Unwrap() error { return message.ErrDenied }

// denied says that someone may not do something.
func denied(user string, op Operation, d message.Destination) error {
	return refusal(fmt.Sprintf("User %s is not authorized to %s: %s", user, verbs[op], d))
}
