package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
)

// A jaasDialect are the names of one product's JAAS modules, and of their options.
type jaasDialect struct {
	classes             string // what stands before the names of the modules
	groups              string // the last word of options about groups: group, role
	userFile, groupFile string // the files of a PropertiesLoginModule that names none
	// elsewhere says where users can be written otherwise.
	elsewhere string
	// hashes says that passwords may be hashed, as ENC(ITERATIONS:SALT:HASH).
	hashes bool
}

// Options that the products' modules share.
const (
	jaasOptions        = "org.apache.activemq.jaas."
	jaasLoginConfig    = "java.security.auth.login.config"
	jaasGuestForNobody = "credentialsInvalidate"
)

// loginConfig is the path of login.config: that of -D, or the one in a directory.
func loginConfig(defines map[string]string, directory string) string {
	if p := defines[jaasLoginConfig]; p != "" {
		return p
	}
	return filepath.Join(directory, "login.config")
}

// A jaasModule is one line of a login.config.
type jaasModule struct {
	class   string
	flag    string // required, requisite, sufficient or optional
	options map[string]string
}

// A jaasLogin reads the users of a domain of a login.config.
type jaasLogin struct {
	*report
	*jaasDialect
	readFile func(path string) ([]byte, error)
	at       func(text string) Notice // a notice at what asks for the login
	props    *placeholders
	into     *access.Options
}

func (j *jaasLogin) failf(format string, args ...any) { j.fail(j.at(fmt.Sprintf(format, args...))) }

// domain reads a domain of the login.config with that text.
func (j *jaasLogin) domain(path, text, domain string) {
	domains, err := parseLoginConfig(text)
	if err != nil {
		j.fail(Notice{File: path, Text: err.Error()})
		return
	}
	modules, ok := domains[domain]
	if !ok {
		j.failf("%s has no domain %q%s", path, domain, didYouMean(domain, slices.Collect(maps.Keys(domains))))
		return
	}
	for i, m := range modules {
		if len(modules) > 1 && m.flag != "sufficient" && m.flag != "optional" {
			j.failf("domain %q of %s has several modules, of which %s is %s: here one that lets a client in is enough; write sufficient, or keep one module", domain, path, m.class, m.flag)
		}
		j.module(path, m, i == len(modules)-1)
	}
	if o := j.into; len(o.Users) == 0 && !o.Anonymous && len(j.problems) == 0 {
		j.failf("lets nobody in: domain %q of %s has no users", domain, path)
	}
}

// module takes one module; last says that no other is asked after it.
func (j *jaasLogin) module(path string, m jaasModule, last bool) {
	for name, value := range m.options {
		expanded, err := j.props.expand(value)
		if err != nil {
			j.fail(Notice{File: path, Part: name, Text: err.Error()})
			return
		}
		m.options[name] = expanded
	}
	switch m.class {
	case j.classes + "PropertiesLoginModule":
		j.users(path, m.options)
	case j.classes + "GuestLoginModule":
		o := j.into
		if b, err := parseBool(m.options[jaasGuestForNobody]); err != nil || !b {
			if !last {
				j.failf("GuestLoginModule in %s lets everybody in before a password is looked at; put it last, or write %s=true there", path, jaasGuestForNobody)
				return
			}
			j.warn(j.at(fmt.Sprintf("GuestLoginModule in %s makes a guest of whoever gives a wrong password, too; write %s=true there, so that only who gives none is one", path, jaasGuestForNobody)))
			o.AnonymousInstead = true
		}
		o.Anonymous, o.AnonymousUser, o.AnonymousGroup = true, "guest", "guests"
		if v := m.options[jaasOptions+"guest.user"]; v != "" {
			o.AnonymousUser = v
		}
		if v := m.options[jaasOptions+"guest."+j.groups]; v != "" {
			o.AnonymousGroup = v
		}
	default:
		j.failf("login module %s of %s is Java code and is not run, so nobody could be told from anybody; keep the users in the files of a PropertiesLoginModule, or %s", m.class, path, j.elsewhere)
	}
}

// users reads the two files of a PropertiesLoginModule: name=password, and
// group=name,name.
func (j *jaasLogin) users(path string, options map[string]string) {
	file := func(option, name string) (string, map[string]string) {
		if v := options[jaasOptions+option]; v != "" {
			name = v
		}
		base := filepath.Dir(path)
		if v := options["baseDir"]; v != "" {
			base = v
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(base, name)
		}
		raw, err := j.readFile(name)
		if err != nil {
			j.failf("%s, which %s names, cannot be read: %v", name, path, err)
		}
		return name, parseProperties(string(raw))
	}
	source, passwords := file("properties.user", j.userFile)
	_, members := file("properties."+j.groups, j.groupFile)
	groups := map[string][]string{}
	for _, group := range slices.Sorted(maps.Keys(members)) {
		for _, user := range groupList(members[group]) {
			groups[user] = append(groups[user], group)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(passwords)) {
		u := access.User{Name: name, Password: access.Secret(passwords[name]), Groups: groups[name], Source: source}
		if encrypted(passwords[name]) {
			if !j.hashes {
				j.fail(Notice{File: source, Part: "user " + name, Text: "has a password that is encrypted for Java (ENC(...)), which cannot be read here; give it in the clear"})
				continue
			}
			hash, err := access.ParseHash(strings.TrimSuffix(strings.TrimPrefix(passwords[name], "ENC("), ")"))
			if err != nil {
				j.fail(Notice{File: source, Part: "user " + name, Text: "has a password ENC(...) that is not one of Artemis' hashes (" + err.Error() + "); give it in the clear, or make the user anew with artemis user"})
				continue
			}
			u.Password, u.Hash = "", hash
		}
		j.into.Users = append(j.into.Users, u)
	}
}

// encrypted reports whether a password is one that only ActiveMQ's encryptor reads.
func encrypted(password string) bool {
	return strings.HasPrefix(password, "ENC(") && strings.HasSuffix(password, ")")
}

// parseLoginConfig reads a JAAS configuration: NAME { CLASS FLAG KEY=VALUE ...; };
func parseLoginConfig(text string) (map[string][]jaasModule, error) {
	words, err := loginWords(text)
	if err != nil {
		return nil, err
	}
	next := func() string {
		if len(words) == 0 {
			return ""
		}
		word := words[0]
		words = words[1:]
		return word
	}
	domains := map[string][]jaasModule{}
	for len(words) > 0 {
		name := next()
		if got := next(); got != "{" {
			return nil, fmt.Errorf("no { behind %q", name)
		}
		domains[name] = nil
		for len(words) > 0 && words[0] != "}" {
			m := jaasModule{class: next(), options: map[string]string{}}
			m.flag = strings.ToLower(next())
			for len(words) > 0 && words[0] != ";" {
				key := next()
				if got := next(); got != "=" {
					return nil, fmt.Errorf("no = behind %q", key)
				}
				m.options[key] = next()
			}
			if next() != ";" {
				return nil, fmt.Errorf("module %s has no end; write a ;", m.class)
			}
			domains[name] = append(domains[name], m)
		}
		if next() != "}" || next() != ";" {
			return nil, fmt.Errorf("domain %s has no end; write };", name)
		}
	}
	return domains, nil
}

// loginWords cuts a JAAS configuration into its words; comments are left out.
func loginWords(text string) ([]string, error) {
	const marks = "{};="
	var words []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		switch {
		case strings.HasPrefix(text, "//"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, rest, ok := strings.Cut(text, "*/")
			if !ok {
				return nil, fmt.Errorf("a comment has no end")
			}
			text = rest
		case text[0] == '"' || text[0] == '\'':
			word, rest, ok := strings.Cut(text[1:], text[:1])
			if !ok {
				return nil, fmt.Errorf("a quoted text has no end")
			}
			words, text = append(words, word), rest
		case strings.IndexByte(marks, text[0]) >= 0:
			words, text = append(words, text[:1]), text[1:]
		default:
			end := strings.IndexAny(text, marks+" \t\r\n\"'")
			if end < 0 {
				end = len(text)
			}
			words, text = append(words, text[:end]), text[end:]
		}
	}
	return words, nil
}
