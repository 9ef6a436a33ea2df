package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/nixiemq/nixie/internal/access"
)

// access says who clients are and what they may do.
func (y yamlReader) access(name string) yamlKey {
	return section(y, name, &y.cfg.Access, func() *access.Options { return &access.Options{} }, func(y yamlReader, o *access.Options) []yamlKey {
		return []yamlKey{
			y.users("users", o).says("Users with passwords and groups."),
			y.flag("anonymous", &o.Anonymous).says("Let clients in that give neither name nor password; default false."),
			y.text("anonymousUser", &o.AnonymousUser).says("What these are called; default anonymous."),
			y.text("anonymousGroup", &o.AnonymousGroup).says("Their group, or several with commas; default anonymous."),
			y.flag("anonymousInstead", &o.AnonymousInstead).says("Let those in as anonymous, too, who give a wrong name or password; default false."),
			y.texts("admins", &o.AdminGroups).says("Groups whose members may act at the admin listener; default admins, with securitySettings nobody."),
			section(y, "authorization", &o.Authorization, func() *access.Authorization { return &access.Authorization{} }, yamlReader.authorization, nil).
				says("What groups may do; what no entry allows is denied. Absent: whoever is let in may do everything."),
			y.securitySettings("securitySettings", o).
				says("What groups may do, by addresses, as in a HornetQ or Artemis file; needs addressSettings, and takes the place of authorization."),
		}
	}, func(part string, node ast.Node, o *access.Options) {
		o.Source = y.source(first(node))
		if len(o.Users) == 0 && !o.Anonymous && len(y.problems) == 0 {
			y.fail(y.at(first(node), part, "has no users, so nobody could connect; add users, or remove it"))
		}
	})
}

// users is the list of users.
func (y yamlReader) users(name string, o *access.Options) yamlKey {
	return listOf[access.User]{
		fresh: func() access.User { return access.User{} },
		keys: func(y yamlReader, _ string, u *access.User) []yamlKey {
			hash := func() yamlValue {
				if u.Hash == nil {
					return nil
				}
				return yamlText(u.Hash.Text())
			}
			password := func() yamlValue {
				if u.Hash != nil || u.Name == "" { // nobody's yet: so that an empty one is written, too
					return nil
				}
				return yamlText(u.Password)
			}
			return []yamlKey{
				y.name("name", &u.Name).says("The user's name."),
				y.value("password", yamlForm{kind: formText}, func(s string) error {
					if strings.HasPrefix(s, "ENC(") && strings.HasSuffix(s, ")") {
						return errors.New("is encrypted for Java (ENC(...)), which cannot be read here; give it in the clear")
					}
					u.Password = access.Secret(s)
					return nil
				}, password).says("The password, in the clear."),
				y.value("passwordHash", yamlForm{kind: formText}, func(s string) (err error) { u.Hash, err = access.ParseHash(s); return err }, hash).
					says("The hash of the password instead, as Artemis keeps it: ITERATIONS:SALT:HASH (PBKDF2 with HMAC-SHA1, hexadecimal)."),
				y.texts("groups", &u.Groups).says("The user's groups."),
			}
		},
		source: func(u *access.User) string { return u.Source },
		oneOf:  []string{"password", "passwordHash"},
		needs:  []string{"name"},
	}.key(y, name, func() []access.User { return o.Users }, func(part string, node ast.Node, u access.User) {
		for _, other := range o.Users {
			if other.Name == u.Name {
				y.fail(y.at(first(node), part, "is the second user "+u.Name+"; remove one"))
				return
			}
		}
		u.Source = y.source(first(node))
		o.Users = append(o.Users, u)
	})
}

// authorization are the keys under authorization.
func (y yamlReader) authorization(a *access.Authorization) []yamlKey {
	one := func(name string, into **access.Entry) yamlKey {
		return section(y, name, into, func() *access.Entry { return &access.Entry{} }, yamlReader.rights,
			func(_ string, node ast.Node, e *access.Entry) { e.Source = y.source(first(node)) })
	}
	return []yamlKey{
		listOf[access.Entry]{
			fresh: func() access.Entry { return access.Entry{} },
			keys: func(y yamlReader, _ string, e *access.Entry) []yamlKey {
				return append(y.patternKeys(&e.Destination)[:2], y.rights(e)...)
			},
			source: func(e *access.Entry) string { return e.Source },
			oneOf:  patternNames[:2],
		}.key(y, "entries", func() []access.Entry { return a.Entries }, func(part string, node ast.Node, e access.Entry) {
			parts := e.Destination.Parts()
			if len(a.Entries)+len(parts) > maxPolicies {
				y.fail(y.at(first(node), part, fmt.Sprintf("more than %d entries", maxPolicies)))
				return
			}
			for _, d := range parts {
				e.Destination, e.Source = d, y.source(first(node))
				a.Entries = append(a.Entries, e)
			}
		}).says("Rights on destinations; all that match count together."),
		one("default", &a.Default).says("Rights on every destination, beside those."),
		one("temporary", &a.Temporary).says("Rights on temporary destinations; absent: everybody may use them."),
	}
}

// rights are the keys of the groups that may do something; "*" is everybody.
func (y yamlReader) rights(e *access.Entry) []yamlKey {
	return []yamlKey{
		y.texts("read", &e.Read).says("Groups that may consume and browse; * is everybody."),
		y.texts("write", &e.Write).says("Groups that may send."),
		y.texts("admin", &e.Admin).says("Groups that may create and remove."),
	}
}

// securitySettings are the rights of a HornetQ or Artemis file. Their patterns are
// made when all is read, as the syntax stands in addressSettings.
func (y yamlReader) securitySettings(name string, o *access.Options) yamlKey {
	own := func() *SecuritySettings {
		s, ok := o.Settings.(*SecuritySettings)
		if !ok {
			s = &SecuritySettings{addresses: y.cfg.Addresses}
		}
		return s
	}
	k := listOf[securitySetting]{
		fresh: func() securitySetting { return securitySetting{roles: map[string][]string{}} },
		keys: func(y yamlReader, _ string, a *securitySetting) []yamlKey {
			match := y.name("match", &a.pattern.text)
			if a.pattern.literal {
				match.show = func() yamlValue { return a.pattern.marked(own().addresses.syntax) }
			}
			keys := []yamlKey{match.says("An address, or a pattern. Of those that fit the most specific one counts, whole.")}
			for _, p := range permissions {
				list := a.roles[p]
				key := y.texts(p, &list)
				take := key.take
				key.take = func(part string, node ast.Node) {
					take(part, node)
					a.roles[p] = list
				}
				keys = append(keys, key.says("Groups with this permission."))
			}
			return keys
		},
		source: func(a *securitySetting) string { return a.source },
		needs:  []string{"match"},
	}.key(y, name, func() []securitySetting {
		if o.Settings == nil {
			return nil
		}
		return append([]securitySetting{}, own().settings...)
	}, func(part string, node ast.Node, a securitySetting) {
		s := own()
		if len(s.settings) == maxPolicies {
			y.fail(y.at(first(node), part, fmt.Sprintf("more than %d settings", maxPolicies)))
			return
		}
		a.source = y.source(first(node))
		s.settings = append(s.settings, a)
	})
	take := k.take
	k.take = func(part string, node ast.Node) {
		o.Settings = own()
		take(part, node)
	}
	return k
}

// securityPatterns makes the patterns of the securitySettings that were read.
func (y yamlReader) securityPatterns(body ast.Node) {
	if y.cfg.Access == nil {
		return
	}
	s, ok := y.cfg.Access.Settings.(*SecuritySettings)
	const part = "access.securitySettings"
	switch {
	case !ok:
		return
	case y.cfg.Addresses == nil:
		y.fail(y.at(first(body), part, "needs addressSettings, which say how patterns are written; an empty mapping is enough"))
		return
	case y.cfg.Access.Authorization != nil:
		y.fail(y.at(first(body), part, "stands beside authorization, which would have no effect; write one or the other"))
		return
	}
	s.addresses = y.cfg.Addresses
	read := s.settings
	s.settings = nil
	for i, a := range read {
		place := fmt.Sprintf("%s[%d].match", part, i)
		p, err := parseAddressPattern(a.pattern.text, s.addresses.product, s.addresses.syntax)
		if err != nil {
			y.failAt(a.source, place, err.Error())
			continue
		}
		a.pattern = p
		if s.add(a) != nil {
			y.failAt(a.source, place, fmt.Sprintf("%q stands twice; write one setting with all permissions", p.text))
		}
		for _, unknown := range s.unknown(&a) {
			y.failAt(a.source, fmt.Sprintf("%s[%d].%s", part, i, unknown), "is no permission of HornetQ")
		}
	}
}

// unknown lists the permissions of a setting that its product does not have.
func (s *SecuritySettings) unknown(a *securitySetting) []string {
	return slices.DeleteFunc(sortedKeys(a.roles), func(p string) bool { return s.addresses.product == artemis || !slices.Contains(artemisOnly, p) })
}
