package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
)

// jaasPart is a login by the modules of Java's JAAS. Those whose users stand in
// properties files, as in the files that ActiveMQ ships, are read; others are Java
// code and cannot be had.
var jaasPart = &part{name: "jaasAuthenticationPlugin", fate: honoured, role: roleJAAS, attrs: []attr{
	{"configuration", text, "", honoured, ""},
	{"discoverLoginConfig", boolean, "true", leftOut, "login.config is looked for beside the file; -D java.security.auth.login.config=FILE names another"},
}}

// The modules that are read, and the options they have.
const (
	jaasModules        = "org.apache.activemq.jaas."
	jaasProperties     = jaasModules + "PropertiesLoginModule"
	jaasGuest          = jaasModules + "GuestLoginModule"
	jaasUserFile       = jaasModules + "properties.user"
	jaasGroupFile      = jaasModules + "properties.group"
	jaasGuestUser      = jaasModules + "guest.user"
	jaasGuestGroup     = jaasModules + "guest.group"
	jaasDefaultDomain  = "activemq-domain"
	jaasLoginConfig    = "java.security.auth.login.config"
	jaasGuestForNobody = "credentialsInvalidate"
)

// A jaasModule is one line of a login.config.
type jaasModule struct {
	class   string
	flag    string // required, requisite, sufficient or optional
	options map[string]string
}

// jaas reads a jaasAuthenticationPlugin: its domain in login.config, and the files
// that this names.
func (w *walker) jaas(e *element) {
	if w.cfg.Access != nil {
		w.fail(e.at("is the second plugin for logins; remove one"))
		return
	}
	w.cfg.Access = &access.Options{Source: e.source()} // so that nothing listens without a login, whatever is wrong with this one
	domain := jaasDefaultDomain
	w.string(e, "configuration", &domain)
	path := filepath.Join(filepath.Dir(e.file), "login.config")
	if p := w.defines[jaasLoginConfig]; p != "" {
		path = p
	}
	raw, err := w.readFile(path)
	if err != nil {
		w.fail(e.at(fmt.Sprintf("%s cannot be read: %v; it says who the users are. -D %s=FILE names another; or write the users into a simpleAuthenticationPlugin", path, err, jaasLoginConfig)))
		return
	}
	domains, err := parseLoginConfig(string(raw))
	if err != nil {
		w.fail(Notice{File: path, Text: err.Error()})
		return
	}
	modules, ok := domains[domain]
	if !ok {
		w.fail(e.at(fmt.Sprintf("%s has no domain %q%s", path, domain, didYouMean(domain, slices.Collect(maps.Keys(domains))))))
		return
	}
	for _, m := range modules {
		if len(modules) > 1 && m.flag != "sufficient" && m.flag != "optional" {
			w.fail(e.at(fmt.Sprintf("domain %q of %s has several modules, of which %s is %s: here one that lets a client in is enough; write sufficient, or keep one module", domain, path, m.class, m.flag)))
		}
		w.jaasModule(e, path, m)
	}
	if o := w.cfg.Access; len(o.Users) == 0 && !o.Anonymous && len(w.problems) == 0 {
		w.fail(e.at(fmt.Sprintf("lets nobody in: domain %q of %s has no users", domain, path)))
	}
}

// jaasModule takes one module.
func (w *walker) jaasModule(e *element, path string, m jaasModule) {
	for name, value := range m.options {
		expanded, err := w.beans.props.expand(value)
		if err != nil {
			w.fail(Notice{File: path, Part: name, Text: err.Error()})
			return
		}
		m.options[name] = expanded
	}
	switch m.class {
	case jaasProperties:
		w.jaasUsers(e, path, m.options)
	case jaasGuest:
		if b, err := parseBool(m.options[jaasGuestForNobody]); err != nil || !b {
			w.fail(e.at(fmt.Sprintf("GuestLoginModule in %s lets in whoever gives a wrong password; write %s=true there, so that only who gives none is a guest", path, jaasGuestForNobody)))
			return
		}
		w.cfg.Access.Anonymous, w.cfg.Access.AnonymousUser, w.cfg.Access.AnonymousGroup = true, "guest", "guests"
		if v := m.options[jaasGuestUser]; v != "" {
			w.cfg.Access.AnonymousUser = v
		}
		if v := m.options[jaasGuestGroup]; v != "" {
			w.cfg.Access.AnonymousGroup = v
		}
	default:
		w.fail(e.at(fmt.Sprintf("login module %s of %s is Java code and is not run, so nobody could be told from anybody; keep the users in the files of a PropertiesLoginModule, or write them into a simpleAuthenticationPlugin", m.class, path)))
	}
}

// jaasUsers reads the two files of a PropertiesLoginModule: name=password, and
// group=name,name.
func (w *walker) jaasUsers(e *element, path string, options map[string]string) {
	file := func(option, name string) (string, map[string]string) {
		if v := options[option]; v != "" {
			name = v
		}
		base := filepath.Dir(path)
		if v := options["baseDir"]; v != "" {
			base = v
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(base, name)
		}
		raw, err := w.readFile(name)
		if err != nil {
			w.fail(e.at(fmt.Sprintf("%s, which %s names, cannot be read: %v", name, path, err)))
		}
		return name, parseProperties(string(raw))
	}
	source, passwords := file(jaasUserFile, "users.properties")
	_, members := file(jaasGroupFile, "groups.properties")
	groups := map[string][]string{}
	for _, group := range slices.Sorted(maps.Keys(members)) {
		for _, user := range groupList(members[group]) {
			groups[user] = append(groups[user], group)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(passwords)) {
		if encrypted(passwords[name]) {
			w.fail(Notice{File: source, Part: "user " + name, Text: "has a password that is encrypted for Java (ENC(...)), which cannot be read here; give it in the clear"})
			continue
		}
		w.cfg.Access.Users = append(w.cfg.Access.Users, access.User{Name: name, Password: access.Secret(passwords[name]), Groups: groups[name], Source: source})
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
