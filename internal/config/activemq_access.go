package config

import (
	"strings"

	"github.com/nixiemq/nixie/internal/access"
)

// whyNoJAAS is the remedy for logins by certificate.
const whyNoJAAS = "clients are not known by their certificates, so nobody could be told from anybody; write users with passwords into a simpleAuthenticationPlugin"

// simpleAuthenticationPart is the list of users (section 7.8).
var simpleAuthenticationPart = &part{
	name: "simpleAuthenticationPlugin", fate: honoured, role: roleAuthentication,
	attrs: []attr{
		{"anonymousAccessAllowed", boolean, "", honoured, ""},
		{"anonymousUser", text, "", honoured, ""},
		{"anonymousGroup", text, "", honoured, ""},
	},
	children: []*part{
		{name: "users", fate: accepted, children: []*part{{name: "authenticationUser", fate: honoured, attrs: []attr{
			{"username", text, "", honoured, ""},
			{"password", text, "", honoured, ""},
			{"groups", text, "", honoured, ""},
		}}}},
		{name: "userPasswords", fate: refused, why: "write the users as authenticationUser elements", opaque: true},
		{name: "userGroups", fate: refused, why: "write the groups at the authenticationUser elements", opaque: true},
	},
}

// authorizationPart is what groups may do (section 7.8).
var authorizationPart = &part{
	name: "authorizationPlugin", fate: honoured, role: roleAuthorization,
	children: []*part{{name: "map", fate: accepted, children: []*part{
		{name: "authorizationMap", fate: accepted,
			attrs: []attr{{"groupClass", text, "org.apache.activemq.jaas.GroupPrincipal", leftOut, whyNoClass}},
			children: []*part{
				{name: "authorizationEntries", fate: accepted, children: []*part{authorizationEntryPart("authorizationEntry", roleAuthorizationEntry, honoured, "")}},
				{name: "entries", fate: accepted, children: []*part{authorizationEntryPart("authorizationEntry", roleAuthorizationEntry, honoured, "")}},
				{name: "defaultEntry", fate: accepted, children: []*part{authorizationEntryPart("authorizationEntry", roleDefaultAuthorization, leftOut, "the default entry is for every destination")}},
				{name: "tempDestinationAuthorizationEntry", fate: accepted, children: []*part{
					authorizationEntryPart("tempDestinationAuthorizationEntry", roleTempAuthorization, leftOut, "the entry is for every temporary destination")}},
			}},
		refusedPlugin("cachedLDAPAuthorizationMap", whyNoLDAP),
		refusedPlugin("lDAPAuthorizationMap", whyNoLDAP),
		refusedPlugin("simpleAuthorizationMap", "its lists are maps of Java objects; write an authorizationMap with authorizationEntries"),
		refusedPlugin("bean", "a map of a class of one's own is Java code and is not run; everybody could read and write everywhere; write an authorizationMap with authorizationEntries"),
	}}},
}

const (
	whyNoLDAP  = "directories are not asked, so nobody would have a right; write an authorizationMap with authorizationEntries"
	whyNoClass = "groups are names here, without a Java class"
)

// authorizationEntryPart is one entry; pattern as in policyEntryPart.
func authorizationEntryPart(name string, r role, pattern fate, why string) *part {
	attrs := []attr{{"queue", text, "", pattern, why}, {"topic", text, "", pattern, why}}
	for _, temp := range []string{"tempQueue", "tempTopic"} {
		attrs = append(attrs, attr{temp, text, "", leftOut, "temporary destinations have an entry of their own, tempDestinationAuthorizationEntry"})
	}
	return &part{name: name, fate: honoured, role: r, children: []*part{keyPart(pattern, why)}, attrs: append(attrs,
		attr{"read", text, "", honoured, ""}, attr{"write", text, "", honoured, ""}, attr{"admin", text, "", honoured, ""},
		attr{"groupClass", text, "org.apache.activemq.jaas.GroupPrincipal", leftOut, whyNoClass})}
}

// authentication reads the users.
func (w *walker) authentication(e *element) {
	if w.cfg.Access != nil {
		w.fail(e.at("is the second plugin for logins; write all users into one"))
		return
	}
	o := &access.Options{Source: e.source()}
	w.bool(e, "anonymousAccessAllowed", &o.Anonymous)
	w.string(e, "anonymousUser", &o.AnonymousUser)
	w.string(e, "anonymousGroup", &o.AnonymousGroup)
	if holder := e.find("users"); holder != nil {
		for _, c := range holder.children {
			if c.name == "authenticationUser" { // else the walk has named it
				w.user(c, o)
			}
		}
	}
	if len(o.Users) == 0 && !o.Anonymous && len(w.problems) == 0 {
		w.fail(e.at("has no users, so nobody could connect; add authenticationUser elements, or remove it"))
	}
	w.cfg.Access = o
}

// user reads one user.
func (w *walker) user(e *element, o *access.Options) {
	u := access.User{Source: e.source()}
	var password, groups string
	w.string(e, "username", &u.Name)
	w.string(e, "password", &password)
	w.string(e, "groups", &groups)
	switch {
	case u.Name == "" || !hasAttr(e, "password"):
		w.fail(e.at("needs a username and a password"))
		return
	case encrypted(password):
		w.fail(e.at("has a password that is encrypted for Java (ENC(...)), which cannot be read here; give it in the clear, as ${NAME} from a properties file or the environment"))
		return
	}
	u.Password, u.Groups = access.Secret(password), groupList(groups)
	for _, other := range o.Users {
		if other.Name == u.Name {
			w.fail(e.at("is the second user " + u.Name + "; remove one"))
		}
	}
	o.Users = append(o.Users, u)
}

// groupList takes a list with commas apart.
func groupList(s string) []string {
	var list []string
	for g := range strings.SplitSeq(s, ",") {
		if g = strings.TrimSpace(g); g != "" {
			list = append(list, g)
		}
	}
	return list
}

// authorization ends the plugin: its entries were read before.
func (w *walker) authorization(e *element) {
	if w.authorizationPlace != "" {
		w.fail(e.at("is the second authorizationPlugin; write all entries into one"))
	}
	w.authorizationPlace = e.source()
}

// joinAccess joins what the two plugins say. Without users nobody has a group.
func (w *walker) joinAccess() {
	if w.authorizationPlace == "" {
		return
	}
	if w.cfg.Access == nil {
		file, line := splitSource(w.authorizationPlace)
		w.fail(Notice{File: file, Line: line, Part: "authorizationPlugin",
			Text: "needs to know who clients are, or it would deny everything; add a simpleAuthenticationPlugin with their users and groups"})
		return
	}
	w.cfg.Access.Authorization = &w.rights
}

// entryOf reads the groups of an entry.
func (w *walker) entryOf(e *element) access.Entry {
	var read, write, admin string
	w.string(e, "read", &read)
	w.string(e, "write", &write)
	w.string(e, "admin", &admin)
	return access.Entry{Read: groupList(read), Write: groupList(write), Admin: groupList(admin), Source: e.source()}
}

// authorizationEntry reads one entry of the list.
func (w *walker) authorizationEntry(e *element) {
	entry := w.entryOf(e)
	for _, d := range w.patternOf(e) {
		if len(w.rights.Entries) == maxPolicies {
			w.fail(e.at("is one of more entries than are allowed"))
			return
		}
		entry.Destination = d
		w.rights.Entries = append(w.rights.Entries, entry)
	}
}

// oneEntry reads the entry of which there is one.
func (w *walker) oneEntry(e *element, into **access.Entry) {
	if *into != nil {
		w.fail(e.at("is the second entry of its kind; remove one"))
		return
	}
	entry := w.entryOf(e)
	*into = &entry
}
