package config

import (
	"path/filepath"

	"github.com/nixiemq/nixie/internal/access"
)

// jaasPart is a login by the modules of Java's JAAS. Those whose users stand in
// properties files, as in the files that ActiveMQ ships, are read; others are Java
// code and cannot be had.
var jaasPart = &part{name: "jaasAuthenticationPlugin", fate: honoured, role: roleJAAS, attrs: []attr{
	{"configuration", text, "", honoured, ""},
	{"discoverLoginConfig", boolean, "true", leftOut, "login.config is looked for beside the file; -D java.security.auth.login.config=FILE names another"},
}}

// activeMQJAAS are the names of ActiveMQ's modules.
var activeMQJAAS = &jaasDialect{
	classes: "org.apache.activemq.jaas.", groups: "group", userFile: "users.properties", groupFile: "groups.properties",
	elsewhere: "write the users into a simpleAuthenticationPlugin",
}

// jaas reads a jaasAuthenticationPlugin: its domain in login.config, and the files
// that this names.
func (w *walker) jaas(e *element) {
	if w.cfg.Access != nil {
		w.fail(e.at("is the second plugin for logins; remove one"))
		return
	}
	w.cfg.Access = &access.Options{Source: e.source()} // so that nothing listens without a login, whatever is wrong with this one
	domain := "activemq-domain"
	w.string(e, "configuration", &domain)
	j := jaasLogin{report: w.report, jaasDialect: activeMQJAAS, readFile: w.readFile, at: e.at, props: w.beans.props, into: w.cfg.Access}
	path := loginConfig(w.defines, filepath.Dir(e.file))
	raw, err := w.readFile(path)
	if err != nil {
		j.failf("%s cannot be read: %v; it says who the users are. -D %s=FILE names another; or %s", path, err, jaasLoginConfig, j.elsewhere)
		return
	}
	j.domain(path, string(raw), domain)
}
