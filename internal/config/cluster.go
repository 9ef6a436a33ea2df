package config

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A ClusterBroker is one of the brokers that clients may use. Messages are not passed
// between them: each has its own queues.
type ClusterBroker struct {
	// Name is its brokerName, by which updateClusterFilter knows it, and this broker
	// itself; empty: it is not told.
	Name string
	// URI is where clients connect to, as they are told it.
	URI string
	// Source is "FILE:LINE", or "-D nixie.cluster".
	Source string
}

const (
	// defineCluster lists the brokers that clients may use, as [NAME=]URI,...
	defineCluster = "nixie.cluster"
	// fromConnectors takes the list from the networkConnectors of an activemq.xml, which
	// are an error without it.
	fromConnectors = "network-connectors"
)

// maxCluster bounds the list: each client is sent all of it.
const maxCluster = 100

// checkClusterURI fails for what clients could not connect to.
func checkClusterURI(uri string) error {
	scheme, rest, ok := strings.Cut(uri, "://")
	address, _, _ := strings.Cut(rest, "?")
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	switch {
	case !ok || scheme == "" || strings.ContainsAny(uri, ", \t\r\n()") || err != nil || host == "" || strings.ContainsAny(host, "/@#"):
		return fmt.Errorf("%q is no address that clients connect to, such as tcp://HOST:61616", uri)
	case bad != nil || n == 0:
		return fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	return nil
}

// checkClusterFilter fails where a part of updateClusterFilter is no pattern.
func checkClusterFilter(filter string) error {
	_, err := ClusterFilter(filter)
	return err
}

// ClusterFilter reads an updateClusterFilter: regular expressions with commas between
// them, one of which must match the whole name of a broker. An empty one takes all.
func ClusterFilter(filter string) (func(name string) bool, error) {
	var patterns []*regexp.Regexp
	for part := range strings.SplitSeq(filter, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if _, err := regexp.Compile(part); err != nil {
			return nil, fmt.Errorf("%q is no regular expression that is known here: %v", part, err)
		}
		patterns = append(patterns, regexp.MustCompile("^(?:"+part+")$"))
	}
	return func(name string) bool {
		for _, p := range patterns {
			if p.MatchString(name) {
				return true
			}
		}
		return len(patterns) == 0
	}, nil
}

// addToCluster adds a broker to the list, once; place says where it is asked for.
func (r *report) addToCluster(c *Config, b ClusterBroker, place Notice) {
	if err := checkClusterURI(b.URI); err != nil {
		place.Text = err.Error()
		r.fail(place)
		return
	}
	for _, other := range c.Cluster {
		if other.URI == b.URI {
			return
		}
	}
	if len(c.Cluster) == maxCluster {
		place.Text = fmt.Sprintf("more than %d brokers", maxCluster)
		r.fail(place)
		return
	}
	c.Cluster = append(c.Cluster, b)
}

// clusterSwitch lays the list of -D over that of the file.
func (l *loader) clusterSwitch() {
	list, given := l.defines[defineCluster]
	if !given || list == fromConnectors {
		return
	}
	l.cfg.Cluster = nil
	place := Notice{File: "-D", Part: defineCluster}
	for part := range strings.SplitSeq(list, ",") {
		b := ClusterBroker{URI: strings.TrimSpace(part), Source: "-D " + defineCluster}
		if name, uri, ok := strings.Cut(b.URI, "="); ok && !strings.Contains(name, "://") {
			b.Name, b.URI = strings.TrimSpace(name), strings.TrimSpace(uri)
		}
		l.addToCluster(l.cfg, b, place)
	}
}

// clusterNotices names what of the list, and of the listeners' words to it, has no
// effect.
func (l *loader) clusterNotices() {
	if len(l.problems) > 0 {
		return // what is missing may be what was wrong
	}
	told := false
	for _, n := range l.cfg.Listeners {
		o := n.Options
		told = told || o.UpdateClusterClients
		switch {
		case !o.UpdateClusterClients && (o.RebalanceClusterClients || o.UpdateClusterClientsOnRemove || o.UpdateClusterFilter != ""):
			l.warn(n.notice("rebalanceClusterClients, updateClusterClientsOnRemove and updateClusterFilter have no effect without updateClusterClients"))
		case o.UpdateClusterClients && len(l.cfg.Cluster) == 0:
			l.warn(n.notice("has no other brokers to tell clients of: list them, in YAML as cluster, else with -D " + defineCluster + "=tcp://HOST:PORT,..."))
		}
	}
	if len(l.cfg.Cluster) > 0 && !told {
		file, line := splitSource(l.cfg.Cluster[0].Source)
		l.warn(Notice{File: file, Line: line, Part: "cluster", Text: "clients are not told of these brokers: no listener has updateClusterClients=true"})
	}
}

// networkConnector takes the brokers that a networkConnector names for those that
// clients may use, where -D says so; false: it does not.
func (w *walker) networkConnector(e *element) bool {
	if w.defines[defineCluster] != fromConnectors {
		return false
	}
	uri := e.attr("uri")
	uris := staticURIs(uri)
	if len(uris) == 0 {
		w.fail(e.at(fmt.Sprintf("uri=%q names no brokers that clients could be told of; list them with -D %s=tcp://HOST:PORT,... and remove it", uri, defineCluster)))
		return true
	}
	w.warn(e.at("clients may be told of its brokers; messages are not passed on to them"))
	for _, u := range uris {
		w.addToCluster(w.cfg, ClusterBroker{URI: u, Source: e.source()}, e.at(""))
	}
	return true
}

// staticURIs takes static:(uri,uri)?options, masterslave:(...) and what is nested in
// them apart, into the URIs with a host. Options are for the network's own
// connections, and are left out.
func staticURIs(uri string) []string {
	var all []string
	for _, part := range strings.FieldsFunc(uri, func(r rune) bool { return strings.ContainsRune("(), \t\r\n", r) }) {
		for cut := true; cut; { // "static:failover:tcp://b:61616"
			scheme, rest, found := strings.Cut(part, ":")
			if cut = found && !strings.HasPrefix(rest, "//") && scheme != ""; cut {
				part = rest
			}
		}
		part, _, _ = strings.Cut(part, "?")
		if checkClusterURI(part) == nil {
			all = append(all, part)
		}
	}
	return all
}

// cluster is the list of brokers that clients may use: URIs, or mappings with name
// and uri.
func (y yamlReader) cluster(name string) yamlKey {
	named := yamlForm{kind: formMapping, keys: y.clusterBroker(new(ClusterBroker)), needs: []string{"uri"}}
	element := yamlForm{kind: formEither, either: []yamlForm{{kind: formText}, named}}
	return yamlKey{name, yamlForm{kind: formList, of: &element}, func(part string, node ast.Node) {
		y.sequence(part, node, func(part string, node ast.Node) {
			b, before := ClusterBroker{Source: y.source(first(node))}, len(y.problems)
			if s, ok := y.scalar(node); ok {
				b.URI = s
			} else {
				y.mapping(part, node, y.clusterBroker(&b))
			}
			if len(y.problems) == before {
				y.addToCluster(y.cfg, b, y.at(first(node), part, ""))
			}
		})
	}, func() yamlValue {
		if len(y.cfg.Cluster) == 0 {
			return nil
		}
		list := yamlList{}
		for _, b := range y.cfg.Cluster {
			if b.Name == "" {
				list = append(list, yamlText(b.URI))
				continue
			}
			list = append(list, yamlMap{pairs: []yamlPair{{"name", yamlText(b.Name)}, {"uri", yamlText(b.URI)}}})
		}
		return list
	}}
}

// clusterBroker are the keys of a broker with a name.
func (y yamlReader) clusterBroker(b *ClusterBroker) []yamlKey {
	return []yamlKey{
		y.text("name", &b.Name).says("Its brokerName: updateClusterFilter goes by it, and a broker knows itself by it; default: not told."),
		y.text("uri", &b.URI).says("Where clients connect to, as they are told it, such as tcp://broker-b:61616."),
	}
}

func clusterFacts(c *Config) []fact {
	var facts []fact
	for _, b := range c.Cluster {
		facts = append(facts, fact{part: "cluster " + b.URI, value: present, source: b.Source})
		if b.Name != "" {
			facts = append(facts, fact{part: "cluster " + b.URI, setting: "name", value: b.Name, source: b.Source})
		}
	}
	return facts
}
