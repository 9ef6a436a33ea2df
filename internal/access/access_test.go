package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
)

func at(name string) message.Destination {
	d, err := message.ParseDestination(name, message.Queue)
	if err != nil {
		panic(err)
	}
	return d
}

// TestAuthenticate lets in whom section 7.8 lets in, and refuses in ActiveMQ's words.
func TestAuthenticate(t *testing.T) {
	t.Parallel()
	closed := New(Options{Users: []User{{Name: "sam", Password: "pw", Groups: []string{"users"}}, {Name: "", Password: "x"}}})
	open := New(Options{Anonymous: true, Users: []User{{Name: "sam", Password: "pw"}}})
	for name, c := range map[string]struct {
		control        *Control
		user, password string
		given          bool
		want           string // the user who comes in, or the error
	}{
		"right":                        {closed, "sam", "pw", true, "sam"},
		"wrong password":               {closed, "sam", "pW", true, "User name [sam] or password is invalid."},
		"empty password":               {closed, "sam", "", true, "User name [sam] or password is invalid."},
		"nobody of that name":          {closed, "tom", "pw", true, "User name [tom] or password is invalid."},
		"neither, and no anonymous":    {closed, "", "", false, "User name [null] or password is invalid."},
		"neither, anonymous":           {open, "", "", false, "anonymous"},
		"anonymous is no password":     {open, "anonymous", "", true, "User name [anonymous] or password is invalid."},
		"a name where anonymous may":   {open, "sam", "no", true, "User name [sam] or password is invalid."},
		"the right name, too":          {open, "sam", "pw", true, "sam"},
		"no control lets everybody in": {nil, "x", "y", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := c.control.Authenticate(c.user, c.password, c.given)
			if err != nil {
				if !errors.Is(err, message.ErrDenied) || err.Error() != c.want || p != nil {
					t.Errorf("%v %v, want %s", p, err, c.want)
				}
				return
			}
			if p.User() != c.want {
				t.Errorf("%q, want %q", p.User(), c.want)
			}
		})
	}
}

// TestCheck is R-XML-30 and R-XML-31: entries are united, the default counts
// always, nothing else is allowed.
func TestCheck(t *testing.T) {
	t.Parallel()
	rules := &Authorization{
		Entries: []Entry{
			{Destination: at(">"), Read: []string{"admins"}, Write: []string{"admins"}, Admin: []string{"admins"}},
			{Destination: at("USERS.>"), Read: []string{"users"}, Write: []string{"users"}},
			{Destination: at("USERS.SECRET"), Read: []string{"spies"}},
			{Destination: at("topic://NEWS.*"), Read: []string{Everyone}},
		},
		Default: &Entry{Write: []string{"writers"}},
	}
	temps := &Authorization{Temporary: &Entry{Read: []string{"users"}}}
	for name, c := range map[string]struct {
		rules  *Authorization
		groups string
		op     Operation
		d      string
		want   bool
	}{
		"a wide entry":                       {rules, "admins", Create, "ANY", true},
		"a narrow one adds":                  {rules, "users", Read, "USERS.A", true},
		"a narrow one does not take away":    {rules, "users", Read, "USERS.SECRET", true},
		"and gives":                          {rules, "spies", Read, "USERS.SECRET", true},
		"only there":                         {rules, "spies", Read, "USERS.A", false},
		"only that":                          {rules, "users", Create, "USERS.A", false},
		"no entry denies":                    {rules, "users", Read, "topic://USERS.A", false},
		"everyone":                           {rules, "", Read, "topic://NEWS.A", true},
		"the default counts always":          {rules, "writers", Write, "topic://NEWS.A", true},
		"one of several groups":              {rules, "x users", Write, "USERS.A", true},
		"a pattern needs a wider entry":      {rules, "users", Read, "USERS.*", true},
		"a narrower entry is not enough":     {rules, "spies", Read, "USERS.>", false},
		"every part of a composite":          {rules, "users", Write, "USERS.A,USERS.B", true},
		"not only one":                       {rules, "users", Write, "USERS.A,OTHER", false},
		"a temporary one without an entry":   {rules, "", Write, "temp-queue://ID:1", true},
		"a temporary one with an entry":      {temps, "users", Read, "temp-queue://ID:1", true},
		"and without the group":              {temps, "others", Read, "temp-queue://ID:1", false},
		"an entry that lists nobody":         {temps, "users", Write, "temp-topic://ID:1", false},
		"no entries at all deny":             {&Authorization{}, "admins", Read, "A", false},
		"without authorization all is right": {nil, "", Create, "A", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := New(Options{Users: []User{{Name: "sam", Password: "pw", Groups: strings.Fields(c.groups)}}, Authorization: c.rules}).Authenticate("sam", "pw", true)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // asked, and remembered
				if err := p.Check(c.op, at(c.d)); (err == nil) != c.want || err != nil && !errors.Is(err, message.ErrDenied) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	p, _ := New(Options{Users: []User{{Name: "sam", Password: "pw"}}, Authorization: rules}).Authenticate("sam", "pw", true)
	for op, want := range map[Operation]string{Read: "User sam is not authorized to read from: queue://A", Write: "User sam is not authorized to write to: queue://A", Create: "User sam is not authorized to create: queue://A", Remove: "User sam is not authorized to remove: queue://A"} {
		if err := p.Check(op, at("A")); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	var everybody *Principal
	if everybody.Check(Create, at("A")) != nil || !everybody.In(Admins) || everybody.User() != "" {
		t.Error("nil may do everything")
	}
}

// TestRemembersWithinBounds asks more than is remembered.
func TestRemembersWithinBounds(t *testing.T) {
	t.Parallel()
	p, _ := New(Options{Anonymous: true, Authorization: &Authorization{Default: &Entry{Read: []string{Everyone}}}}).Authenticate("", "", false)
	for i := range 3 * maxAnswers {
		if err := p.Check(Read, at(fmt.Sprint("Q", i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.answers) > maxAnswers {
		t.Errorf("%d answers", len(p.answers))
	}
}

// TestSecretsAreNotPrinted prints one in every way.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	o := Options{Users: []User{{Name: "sam", Password: "hunter2"}}}
	if s := fmt.Sprintf("%v %+v %#v %s", o, o, o, o.Users[0].Password); strings.Contains(s, "hunter2") {
		t.Error(s)
	}
}

// TestSet changes what holds for those who are in.
func TestSet(t *testing.T) {
	t.Parallel()
	sam := func(groups ...string) Options {
		return Options{Anonymous: true, Users: []User{{Name: "sam", Password: "pw", Groups: groups}},
			Authorization: &Authorization{Entries: []Entry{{Destination: at(">"), Read: []string{"readers"}, Write: []string{"anonymous"}}}}}
	}
	c := New(sam("readers"))
	p, err := c.Authenticate("sam", "pw", true)
	anybody, err2 := c.Authenticate("", "", false)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	check := func(what string, p *Principal, op Operation, want bool) {
		t.Helper()
		if err := p.Check(op, at("Q")); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %t", what, err, want)
		}
	}
	check("at first", p, Read, true)
	check("anonymous at first", anybody, Write, true)
	c.Set(sam("others"))
	check("without the group", p, Read, false)
	if p.In("readers") || !p.In("others") {
		t.Error("has the groups of before")
	}
	c.Set(sam("readers"))
	check("with it again", p, Read, true)
	c.Set(Options{Users: []User{{Name: "tom", Password: "pw"}}})
	check("who is no longer known", p, Read, false)
	check("anonymous, where nobody may be", anybody, Write, false)
	if _, err := c.Authenticate("sam", "pw", true); err == nil {
		t.Error("sam comes in")
	}
	c.Set(Options{Users: []User{{Name: "sam", Password: "other"}}})
	check("without authorization all is right", p, Create, true)
}

// TestHash is Artemis' one-way hash: what "artemis user" keeps of a password. The
// value was made by another implementation of PBKDF2.
func TestHash(t *testing.T) {
	t.Parallel()
	const text = "1024:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f:5633a2f686c6de4225b8b3a1f2313f915b6be7cf6f6356096014b49178a15f8fd68e960653503e26e597fa6d69494aeccf2f9b0797f9e370e65080acbce85f03"
	h, err := ParseHash(text)
	if err != nil {
		t.Fatal(err)
	}
	if h.Text() != text || !h.Of("hunter2") || h.Of("hunter3") || h.Of("") {
		t.Errorf("%s: the wrong answers", h.Text())
	}
	for _, bad := range []string{"", "1024", "1024:00", "x:00:00", "0:00:00", "1000001:00:00", "1:0:00", "1::00", "1:00:zz", "1:00:00:00"} {
		if _, err := ParseHash(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	o := Options{Users: []User{{Name: "sam", Hash: h}, {Name: "tom", Password: "clear"}, {Name: "", Password: ""}}}
	if s := fmt.Sprintf("%v %+v %#v", o, h, o.Users[0]); strings.Contains(s, "5633a2f6") {
		t.Error(s)
	}
	c := New(o)
	for _, try := range []struct {
		user, password string
		want           bool
	}{{"sam", "hunter2", true}, {"sam", "", false}, {"sam", text, false}, {"tom", "clear", true}, {"tom", "hunter2", false}, {"eve", "hunter2", false}, {"eve", "", false}} {
		if _, err := c.Authenticate(try.user, try.password, true); (err == nil) != try.want {
			t.Errorf("%s %q: %v", try.user, try.password, err)
		}
	}
}

// TestAnonymousInstead lets in who gives a wrong password, as Artemis'
// GuestLoginModule does; the right one makes a client itself.
func TestAnonymousInstead(t *testing.T) {
	t.Parallel()
	c := New(Options{Users: []User{{Name: "sam", Password: "pw", Groups: []string{"users"}}}, Anonymous: true, AnonymousInstead: true, AnonymousUser: "guest", AnonymousGroup: "guests, amq"})
	for password, want := range map[string]string{"pw": "sam", "no": "guest"} {
		p, err := c.Authenticate("sam", password, true)
		if err != nil || p.User() != want || p.In("amq") == (want == "sam") {
			t.Errorf("%s: %v %v", password, p, err)
		}
	}
}

// TestAdministers is about who may act at the admin listener.
func TestAdministers(t *testing.T) {
	t.Parallel()
	users := []User{{Name: "sam", Password: "pw", Groups: []string{"amq"}}, {Name: "root", Password: "pw", Groups: []string{Admins}}}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"the group admins":            {Options{Users: users}, "root"},
		"another group":               {Options{Users: users, AdminGroups: []string{"amq"}}, "sam"},
		"with settings nobody":        {Options{Users: users, Settings: &Authorization{}}, ""},
		"unless they name some group": {Options{Users: users, Settings: &Authorization{}, AdminGroups: []string{"x", "amq"}}, "sam"},
	} {
		control := New(c.o)
		for _, u := range users {
			if p, err := control.Authenticate(u.Name, "pw", true); err != nil || p.Administers() != (c.want == u.Name) {
				t.Errorf("%s: %s %v", name, u.Name, err)
			}
		}
	}
}
