package access

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/nixiemq/nixie/internal/message"
)

// A Control answers who someone is. It may be used by several goroutines.
type Control struct{ holds atomic.Pointer[rules] }

// Rules are what holds at a time; they do not change.
type rules struct {
	o      Options
	rights Rights // nil: everything is allowed
	users  map[string]known
	// anyHash is the hash of some user; nil: all passwords are known.
	anyHash *Hash
}

// A known user, with the digest of the password, or its hash.
type known struct {
	digest [sha256.Size]byte
	hash   *Hash
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
		r.users[u.Name] = known{digest: sha256.Sum256([]byte(u.Password)), hash: u.Hash, groups: u.Groups}
		if u.Hash != nil {
			r.anyHash = u.Hash
		}
	}
	switch {
	case o.Settings != nil:
		r.rights = o.Settings
	case o.Authorization != nil:
		r.rights = o.Authorization
	}
	if o.AdminGroups == nil && o.Settings == nil {
		r.o.AdminGroups = []string{Admins}
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
	if same := r.same(u, password); !given || !ok || !same {
		if r.o.Anonymous && r.o.AnonymousInstead {
			return &Principal{control: c, user: r.o.AnonymousUser, anonymous: true}, nil
		}
		if !given {
			name = "null"
		}
		return nil, refusal(fmt.Sprintf("User name [%s] or password is invalid.", name))
	}
	return &Principal{control: c, user: name}, nil
}

// same reports whether a password is that of u. It does the same work for a name
// that nobody has, and for a user without a hash where another has one, so that it
// takes as long.
func (r *rules) same(u known, password string) bool {
	digest := sha256.Sum256([]byte(password))
	same := subtle.ConstantTimeCompare(digest[:], u.digest[:]) == 1
	hash := cmp.Or(u.hash, r.anyHash)
	if hash == nil {
		return same
	}
	hashed := hash.Of(password)
	if u.hash != nil {
		return hashed
	}
	return same
}

// AdminGroups are the groups whose members may act at the admin listener.
func (c *Control) AdminGroups() []string { return c.holds.Load().o.AdminGroups }

// groupsOf are the groups of someone who was let in; ok is false for one who would
// not be let in now.
func (r *rules) groupsOf(user string, anonymous bool) (groups []string, ok bool) {
	if anonymous {
		groups = strings.Split(r.o.AnonymousGroup, ",")
		for i := range groups {
			groups[i] = strings.TrimSpace(groups[i])
		}
		return groups, r.o.Anonymous
	}
	u, ok := r.users[user]
	return u.groups, ok
}

// Allows reports whether one of the groups may do op on d (R-XML-30). ActiveMQ does
// not ask about subscriptions of a topic that may be read.
func (a *Authorization) Allows(groups []string, op Operation, d message.Destination) bool {
	if op == Subscribe || op == SubscribeDurably || op == Unsubscribe {
		return true
	}
	in := func(e *Entry) bool { return e != nil && Among(groups, e.groups(op)) }
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

// Among reports whether one of the groups is in a list of those that may do
// something.
func Among(groups, list []string) bool {
	return slices.ContainsFunc(list, func(g string) bool { return g == Everyone || slices.Contains(groups, g) })
}
