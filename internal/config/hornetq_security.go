package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nixiemq/nixie/internal/access"
)

// securitySettingsPart says which roles may do what (R-HQ-128, R-HQ-137).
func securitySettingsPart(more ...*part) *part {
	return &part{name: "security-settings", fate: accepted, children: append([]*part{
		{name: "security-setting", fate: honoured, role: roleSecuritySetting, attrs: []attr{{"match", text, "", honoured, ""}}, children: []*part{
			{name: "permission", fate: honoured, attrs: []attr{{"type", text, "", honoured, ""}, {"roles", text, "", honoured, ""}}},
		}},
	}, more...)}
}

// artemisSecurityParts are what Artemis has besides.
var artemisSecurityParts = []*part{
	{name: "role-mapping", fate: honoured, role: roleRoleMapping, attrs: []attr{{"from", text, "", honoured, ""}, {"to", text, "", honoured, ""}}},
	{name: "security-setting-plugin", fate: refused, why: "a plugin " + whyJavaCode + ", so nobody would have the rights that it gives; write them as security-setting elements", opaque: true},
}

// artemisJAAS are the names of Artemis' modules.
var artemisJAAS = &jaasDialect{
	classes: "org.apache.activemq.artemis.spi.core.security.jaas.", groups: "role", userFile: "artemis-users.properties", groupFile: "artemis-roles.properties",
	elsewhere: "set security-enabled to false to let everybody do everything", hashes: true,
}

// Files beside those of the products that say who the users are.
const (
	hornetQUsersName  = "hornetq-users.xml"
	artemisBootstrap  = "bootstrap.xml"
	artemisJAASDomain = "activemq" // where bootstrap.xml names none
)

// managementAddresses are the defaults of management-address.
var managementAddresses = map[product]string{hornetQ: "jms.queue.hornetq.management", artemis: "activemq.management"}

// secure reads users and rights, or says that there are none.
func (w *coreFile) secure(s *AddressSettings) {
	if w.insecure {
		if len(w.securities) > 0 {
			w.warn(w.securities[0].at("has no effect, and those behind it: security-enabled is false, so everybody may do everything"))
		}
		return
	}
	settings := &SecuritySettings{addresses: s}
	for _, e := range w.securities {
		w.securitySetting(settings, e)
	}
	o := &access.Options{Settings: settings, Source: w.root.source()}
	if !w.usersInto(o) {
		w.withoutUsers()
		return
	}
	if len(settings.settings) == 0 && len(w.problems) == 0 {
		w.warn(w.root.at("has no security-setting, so nobody may do anything, as in " + w.product.String() + "; add one, or set security-enabled to false"))
	}
	management := managementAddresses[w.product]
	if w.management != "" {
		management = w.management
	}
	o.AdminGroups = settings.administrators(management)
	w.cfg.Access = o
}

// withoutUsers is for a file whose users cannot be had. Where it restricts what they
// may do, it is no file to start a broker with that lets everybody do everything.
func (w *coreFile) withoutUsers() {
	where := "login.config beside it (-D " + jaasLoginConfig + "=FILE names another)"
	if w.product == hornetQ {
		where = hornetQUsersName + " beside it"
	}
	place, text := w.root, "security-enabled is true where it is not set, but "
	switch {
	case len(w.securities) > 0:
		place, text = w.securities[0], "cannot be enforced: "
	case w.security != nil:
		place, text = w.security, "is left out: "
	}
	text += "nobody is asked for a password, as the users are looked for in " + where + ", and there is none"
	if len(w.securities) > 0 && !w.opts.AllowAnonymous {
		w.fail(place.at(text + "; add it, or set security-enabled to false, or give --allow-anonymous, to let everybody do everything"))
		return
	}
	w.warn(place.at(text + ": whoever can connect may do everything"))
}

// securitySetting takes one security-setting.
func (w *coreFile) securitySetting(s *SecuritySettings, e *element) {
	match, ok := e.given("match")
	switch {
	case len(s.settings) == maxPolicies:
		w.fail(e.at(fmt.Sprintf("more than %d security-settings", maxPolicies)))
		return
	case !ok:
		if !hasAttr(e, "match") {
			w.fail(e.at("has no match; give it an address or a pattern, such as match=\"#\""))
		}
		return
	}
	p, err := parseAddressPattern(match.value, w.product, w.syntax)
	if err != nil {
		w.fail(e.atAttr(match, err.Error()))
		return
	}
	a := securitySetting{pattern: p, roles: map[string][]string{}, source: e.source()}
	for _, c := range e.children {
		w.permission(&a, c)
	}
	if other := s.add(a); other != nil {
		w.fail(e.atAttr(match, fmt.Sprintf("%q stands twice, first in %s; write one security-setting with all permissions", p.text, other.source)))
	}
}

// add puts a setting to the others; where there is one for its match already, that
// is returned, and nothing added.
func (s *SecuritySettings) add(a securitySetting) *securitySetting {
	for i := range s.settings {
		if b := &s.settings[i]; b.pattern.text == a.pattern.text && b.pattern.literal == a.pattern.literal {
			return b
		}
	}
	s.settings = append(s.settings, a)
	return nil
}

// permissionAliases are HornetQ's older names.
var permissionAliases = map[string]string{"createTempQueue": permitCreateNonDurable, "deleteTempQueue": permitDeleteNonDurable}

// artemisOnly are permissions that HornetQ does not know.
var artemisOnly = []string{permitBrowse, permitCreateAddress, permitDeleteAddress}

// permission takes one permission of a setting.
func (w *coreFile) permission(a *securitySetting, e *element) {
	if e.name != "permission" {
		return // reported
	}
	name := strings.TrimSpace(e.attr("type"))
	if alias, ok := permissionAliases[name]; ok {
		name = alias
	}
	known := slices.DeleteFunc(slices.Clone(permissions), func(p string) bool { return w.product == hornetQ && slices.Contains(artemisOnly, p) })
	switch {
	case !hasAttr(e, "type") || !hasAttr(e, "roles"):
		w.fail(e.at("needs a type and roles"))
		return
	case w.product == artemis && (name == "view" || name == "edit"):
		w.warn(e.at(fmt.Sprintf("%q is left out: it is about management by messages and JMX; %s says who may act at the admin listener", name, permitManage)))
		return
	case !slices.Contains(known, name):
		w.fail(e.at(fmt.Sprintf("type %q is not known%s", name, didYouMean(name, known))))
		return
	}
	for _, role := range groupList(e.attr("roles")) {
		for _, r := range append([]string{role}, w.mapped[role]...) {
			if !slices.Contains(a.roles[name], r) {
				a.roles[name] = append(a.roles[name], r)
			}
		}
	}
}

// roleMapping reads a role-mapping: who has the role from has the roles to as well.
func (w *coreFile) roleMapping(e *element) {
	from, to := strings.TrimSpace(e.attr("from")), strings.FieldsFunc(e.attr("to"), func(r rune) bool { return r == ' ' || r == ',' })
	if from == "" || len(to) == 0 {
		w.fail(e.at("needs from and to"))
		return
	}
	if w.mapped == nil {
		w.mapped = map[string][]string{}
	}
	for _, role := range to {
		w.mapped[role] = append(w.mapped[role], from)
	}
}

// usersInto reads the users; false: the files that would say them are not there.
func (w *coreFile) usersInto(o *access.Options) bool {
	directory := filepath.Dir(w.root.file)
	path := filepath.Join(directory, hornetQUsersName)
	if w.product == artemis {
		path = loginConfig(w.defines, directory)
	}
	raw, err := w.readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && w.defines[jaasLoginConfig] == "":
		return false
	case err != nil:
		w.fail(Notice{File: path, Text: "cannot be read: " + err.Error()})
	case w.product == hornetQ:
		w.hornetQUsers(o, path, raw)
	default:
		at := func(text string) Notice { return Notice{File: path, Text: text} }
		j := jaasLogin{report: &w.report, jaasDialect: artemisJAAS, readFile: w.readFile, at: at, props: w.placeholders(w.root.file), into: o}
		j.domain(path, string(raw), w.jaasDomain(directory))
	}
	return true
}

// jaasDomain is the domain of login.config that Artemis' bootstrap.xml names.
func (w *coreFile) jaasDomain(directory string) string {
	path := filepath.Join(directory, artemisBootstrap)
	raw, err := w.readFile(path)
	if err != nil {
		return artemisJAASDomain
	}
	root, problem := parseXML(path, raw)
	if problem != nil {
		w.fail(*problem)
		return artemisJAASDomain
	}
	for _, name := range []string{"security-manager", "basic-security"} {
		if e := root.find(name); e != nil {
			w.fail(e.at(notOfferedText + "nobody could be told from anybody; write jaas-security, and keep the users in the files of a PropertiesLoginModule"))
		}
	}
	if e := root.find("jaas-security"); e != nil && e.attr("domain") != "" {
		return e.attr("domain")
	}
	return artemisJAASDomain
}

// hornetQUsers reads hornetq-users.xml: users with roles, and the one that clients
// are who give no name.
func (w *coreFile) hornetQUsers(o *access.Options, path string, raw []byte) {
	root, problem := parseXML(path, raw)
	switch {
	case problem != nil:
		w.fail(*problem)
		return
	case root.name != "configuration" || root.space != "urn:hornetq":
		w.fail(root.at("is not the root of a HornetQ configuration"))
		return
	}
	w.expand(root, w.placeholders(path))
	for _, e := range root.children {
		switch e.name {
		case "mask-password":
			if on, err := parseBool(e.text); err != nil || on {
				w.fail(e.at("the passwords are masked by Java code, which cannot be read here; give them in the clear, and set this to false"))
			}
		case "password-codec":
			w.fail(e.at("a codec " + whyJavaCode + "; give the passwords in the clear"))
		case "user":
			w.hornetQUser(o, e)
		case "defaultuser":
			w.hornetQUser(o, e)
			if o.Anonymous {
				w.fail(e.at("is the second defaultuser; remove one"))
			}
			o.Anonymous, o.AnonymousUser, o.AnonymousGroup = true, e.attr("name"), strings.Join(rolesOf(e), ",")
		default:
			w.fail(e.at("unknown element inside configuration" + didYouMean(e.name, []string{"user", "defaultuser"})))
		}
	}
	if len(o.Users) == 0 && len(w.problems) == 0 {
		w.fail(root.at("has no users, so nobody could connect; add some, or set security-enabled to false"))
	}
}

// hornetQUser reads one user.
func (w *coreFile) hornetQUser(o *access.Options, e *element) {
	u := access.User{Name: e.attr("name"), Password: access.Secret(e.attr("password")), Groups: rolesOf(e), Source: e.source()}
	switch {
	case u.Name == "" || !hasAttr(e, "password"):
		w.fail(e.at("needs a name and a password"))
	case slices.ContainsFunc(o.Users, func(other access.User) bool { return other.Name == u.Name }):
		w.fail(e.at("is the second user " + u.Name + "; remove one"))
	default:
		o.Users = append(o.Users, u)
	}
}

// rolesOf lists the roles of a user of HornetQ.
func rolesOf(e *element) []string {
	var roles []string
	for _, c := range e.children {
		if name := c.attr("name"); c.name == "role" && name != "" {
			roles = append(roles, name)
		}
	}
	return roles
}
