package access

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/message"
)

// A Control answers who someone is. It may be used by several goroutines.
type Control struct{ holds atomic.Pointer[rules] }

// Rules are what holds at a time; they do not change.
type rules struct {
	o     Options
	users map[string]known
}

// A known user, with the digest of the password.
type known struct {
	digest [sha256.Size]byte
	groups []string
}

// New makes a Control. A user that stands twice has the later password and groups.
func New(o Options) *Control {
	c := &Control{}
	c.Set(o)
	return c
}

// Set makes other options hold. Who is in stays in; what they may do from then on
// is what the new options say of them, and nothing if they do not know them. A
// consumer that is there keeps what it gets.
func (c *Control) Set(o Options) {
	o.AnonymousUser = cmp.Or(o.AnonymousUser, "anonymous")
	o.AnonymousGroup = cmp.Or(o.AnonymousGroup, "anonymous")
	r := &rules{o: o, users: make(map[string]known, len(o.Users))}
	for _, u := range o.Users {
		r.users[u.Name] = known{digest: sha256.Sum256([]byte(u.Password)), groups: u.Groups}
	}
	c.holds.Store(r)
}

// Authenticate says who a client is that gives a name and a password; given is
// false where it gave neither. message.ErrDenied, in ActiveMQ's words, where it is
// not let in. A nil Control lets everybody in, as nil.
func (c *Control) Authenticate(name, password string, given bool) (*Principal, error) {
	if c == nil {
		return nil, nil
	}
	r := c.holds.Load()
	if !given && r.o.Anonymous {
		return &Principal{control: c, user: r.o.AnonymousUser, anonymous: true}, nil
	}
	u, ok := r.users[name]
	digest := sha256.Sum256([]byte(password))
	// Digests are compared even for a name that nobody has, so that it takes as long.
	same := subtle.ConstantTimeCompare(digest[:], u.digest[:]) == 1
	if !given || !ok || !same {
		if !given {
			name = "null"
		}
		return nil, refusal(fmt.Sprintf("User name [%s] or password is invalid.", name))
	}
	return &Principal{control: c, user: name}, nil
}

// groupsOf are the groups of someone who was let in; ok is false for one who would
// not be let in now.
func (r *rules) groupsOf(user string, anonymous bool) (groups []string, ok bool) {
	if anonymous {
		return []string{r.o.AnonymousGroup}, r.o.Anonymous
	}
	u, ok := r.users[user]
	return u.groups, ok
}

// allows reports whether one of the groups may do op on d, which is no composite
// (R-XML-30).
func (a *Authorization) allows(groups []string, op Operation, d message.Destination) bool {
	in := func(e *Entry) bool {
		return e != nil && slices.ContainsFunc(e.groups(op), func(g string) bool {
			return g == Everyone || slices.Contains(groups, g)
		})
	}
	if d.IsTemporary() {
		return a.Temporary == nil || in(a.Temporary)
	}
	for i := range a.Entries {
		if e := &a.Entries[i]; e.Destination.Matches(d) && in(e) {
			return true
		}
	}
	return in(a.Default)
}
