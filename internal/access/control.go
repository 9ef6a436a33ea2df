package access

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"

	"github.com/nixiemq/nixie/internal/message"
)

// A Control answers who someone is. It does not change, and may be used by
// several goroutines.
type Control struct {
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
	o.AnonymousUser = cmp.Or(o.AnonymousUser, "anonymous")
	o.AnonymousGroup = cmp.Or(o.AnonymousGroup, "anonymous")
	c := &Control{o: o, users: make(map[string]known, len(o.Users))}
	for _, u := range o.Users {
		c.users[u.Name] = known{digest: sha256.Sum256([]byte(u.Password)), groups: u.Groups}
	}
	return c
}

// Authenticate says who a client is that gives a name and a password; given is
// false where it gave neither. message.ErrDenied, in ActiveMQ's words, where it is
// not let in. A nil Control lets everybody in, as nil.
func (c *Control) Authenticate(name, password string, given bool) (*Principal, error) {
	if c == nil {
		return nil, nil
	}
	if !given && c.o.Anonymous {
		return c.principal(c.o.AnonymousUser, []string{c.o.AnonymousGroup}), nil
	}
	u, ok := c.users[name]
	digest := sha256.Sum256([]byte(password))
	// Digests are compared even for a name that nobody has, so that it takes as long.
	same := subtle.ConstantTimeCompare(digest[:], u.digest[:]) == 1
	if !given || !ok || !same {
		if !given {
			name = "null"
		}
		return nil, refusal(fmt.Sprintf("User name [%s] or password is invalid.", name))
	}
	return c.principal(name, u.groups), nil
}

func (c *Control) principal(user string, groups []string) *Principal {
	return &Principal{user: user, groups: groups, rules: c.o.Authorization, answers: map[question]bool{}}
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
