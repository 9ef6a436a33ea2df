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

// An Operation is what someone wants to do with a destination. An
// authorizationEntry has three words for them, a security-setting of HornetQ and
// Artemis one for each.
type Operation uint8

// The operations.
const (
	Read             Operation = iota // consume
	Browse                            // look at a queue's messages
	Write                             // send
	Create                            // make a queue or a topic
	Remove                            // remove one
	Subscribe                         // to a topic, while the consumer is there
	SubscribeDurably                  // to a topic, under a name that stays
	Unsubscribe                       // remove such a name
)

// Everyone in a list of groups stands for everybody, whatever groups they have.
const Everyone = "*"

// Admins is the group whose members may act at the admin listener, where Options
// name no other.
const Admins = "admins"

// Options say who there is and who may do what. They are not changed once in use.
type Options struct {
	Users []User
	// Anonymous lets clients in that give neither name nor password, as
	// AnonymousUser in AnonymousGroup; default false.
	Anonymous                     bool
	AnonymousUser, AnonymousGroup string // default "anonymous", both; several groups with commas
	// AnonymousInstead lets those in as anonymous, too, who give a wrong name or
	// password; default false.
	AnonymousInstead bool
	// Authorization says what the groups may do; nil: everybody who is let in may
	// do everything.
	Authorization *Authorization
	// Settings takes the place of Authorization: they are the security-settings of a
	// HornetQ or Artemis file; nil: there are none.
	Settings Rights
	// AdminGroups are those whose members may act at the admin listener; nil: Admins,
	// with Settings nobody.
	AdminGroups []string
	// Source is where it was written, "FILE:LINE".
	Source string
}

// Rights say what groups may do with a destination, which is no composite.
type Rights interface {
	Allows(groups []string, op Operation, d message.Destination) bool
}

// A User is someone with a password.
type User struct {
	Name     string
	Password Secret
	// Hash is what is known of the password where it is not known itself; nil:
	// Password is it.
	Hash   *Hash
	Groups []string
	Source string // "FILE:LINE"
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
	case Read, Browse:
		return e.Read
	case Write:
		return e.Write
	}
	return e.Admin
}

// verbs are ActiveMQ's words for what is denied, and like them for what it does not
// ask for.
var verbs = [...]string{Read: "read from", Browse: "read from", Write: "write to", Create: "create", Remove: "remove",
	Subscribe: "create a subscription of", SubscribeDurably: "create a durable subscription of", Unsubscribe: "remove a durable subscription of"}

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
