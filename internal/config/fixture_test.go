package config

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/nixiemq/nixie/internal/access"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/redelivery"
)

var rewrite = flag.Bool("rewrite", false, "write what Load says into the fixtures; read the diff")

// TestFixtures loads each archive of testdata as a user would: its comment holds
// the flags (after ">") and the environment (after "$"), its first file is the
// one of --config, and "want" is what comes of it.
func TestFixtures(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := describe(Load(fixtureOptions(t, archive)))
			last := len(archive.Files) - 1
			if *rewrite {
				archive.Files[last].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if archive.Files[last].Name != "want" {
				t.Fatal("the last file is not \"want\"")
			}
			if diff := cmp.Diff(string(archive.Files[last].Data), got); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
		})
	}
}

// fixtureOptions reads the comment of an archive and serves its files.
func fixtureOptions(t *testing.T, a *txtar.Archive) Options {
	t.Helper()
	env := map[string]string{}
	files := map[string][]byte{}
	for _, f := range a.Files {
		files[f.Name] = f.Data
	}
	opts := Options{
		File:      a.Files[0].Name,
		LookupEnv: func(n string) (string, bool) { v, ok := env[n]; return v, ok },
		ReadFile: func(p string) ([]byte, error) {
			if b, ok := files[p]; ok {
				return b, nil
			}
			return nil, &os.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
		},
	}
	for line := range strings.SplitSeq(string(a.Comment), "\n") {
		if v, ok := strings.CutPrefix(line, "$ "); ok {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		if f, ok := strings.CutPrefix(line, "> "); ok {
			setFlag(t, &opts, f)
		}
	}
	return opts
}

// setFlag sets one flag, "--name=value".
func setFlag(t *testing.T, opts *Options, f string) {
	t.Helper()
	name, value, _ := strings.Cut(f, "=")
	switch name {
	case "--data":
		opts.Data = value
	case "--listen":
		opts.Listen = append(opts.Listen, value)
	case "--admin":
		opts.Admin = &value
	case "--without-keys":
		opts.WithoutKeys = true
	case "--allow-anonymous":
		opts.AllowAnonymous = true
	case "--hand-out-marks":
		on := value == "true"
		opts.HandOutMarks = &on
	case "-D":
		opts.Defines = append(opts.Defines, value)
	default:
		t.Fatalf("flag %q", f)
	}
}

// describe writes the outcome of Load as text.
func describe(c *Config, notices []Notice, err error) string {
	var b strings.Builder
	for _, n := range notices {
		fmt.Fprintf(&b, "warning %s\n", n)
	}
	if problem := (*Error)(nil); errors.As(err, &problem) {
		for _, n := range problem.Problems {
			fmt.Fprintf(&b, "error %s\n", n)
		}
	} else if err != nil {
		fmt.Fprintf(&b, "error of an unknown kind: %v\n", err)
	}
	if c == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "broker %s\ndata %s persistent=%t\nadmin %q anonymous=%t marks=%t\n",
		c.BrokerName, c.DataDir, c.Persistent, c.Admin, c.AllowAnonymous, c.HandOutMarks)
	fmt.Fprintf(&b, "store free>=%d,%g%% onFull=%s\n", c.Store.MinFreeBytes, c.Store.MinFreePercent, c.Store.OnFull)
	for _, l := range c.Listeners {
		fmt.Fprintf(&b, "listener %s %s %s (%s) %s\n", l.Name, l.Protocol, l.Address(), l.Source, options(l.Options))
	}
	if c.Certificates != (Certificates{}) {
		fmt.Fprintf(&b, "certificates %+v\n", c.Certificates)
	}
	for _, o := range c.Cluster {
		fmt.Fprintf(&b, "cluster %q %s (%s)\n", o.Name, o.URI, o.Source)
	}
	for _, p := range c.Policies {
		fmt.Fprintf(&b, "policy %s\n", policy(p))
	}
	if c.DefaultPolicy != nil {
		fmt.Fprintf(&b, "default policy %s\n", policy(*c.DefaultPolicy))
	}
	describeRest(&b, c)
	return b.String()
}

// describeRest writes the parts that few files have.
func describeRest(b *strings.Builder, c *Config) {
	if c.SchedulerSupport {
		b.WriteString("scheduler\n")
	}
	if p := c.Redelivery; p != nil {
		fmt.Fprintf(b, "redelivery fallback=%t atLimit=%t (%s)\n", p.FallbackToDeadLetter, p.SendToDLQIfMaxRetriesExceeded, p.Source)
		for _, e := range p.Policies {
			fmt.Fprintf(b, "redelivery policy (%s) %s\n", e.Policy.Source, e.Policy.String())
		}
		if p.Default != nil {
			fmt.Fprintf(b, "redelivery default (%s) %s\n", p.Default.Policy.Source, p.Default.Policy.String())
		}
	}
	if d := c.Discarding; d != nil {
		fmt.Fprintf(b, "discarding all=%t tempTopics=%t tempQueues=%t only=%q first=%t (%s)\n", d.DropAll, d.DropTemporaryTopics, d.DropTemporaryQueues, d.DropOnly, d.First, d.Source)
	}
	if t := c.TimeStamping; t != nil {
		fmt.Fprintf(b, "stamping override=%s ceiling=%s futureOnly=%t (%s)\n", t.ZeroExpirationOverride, t.TTLCeiling, t.FutureOnly, t.Source)
	}
	if c.ForcePersistent != nil {
		fmt.Fprintf(b, "persistent by force %t\n", *c.ForcePersistent)
	}
	if s := c.Store; c.MemoryBytes > 0 || s.MaxBytes > 0 || s.MaxPercent > 0 {
		fmt.Fprintf(b, "memory %d, store<=%d,%g%%\n", c.MemoryBytes, s.MaxBytes, s.MaxPercent)
	}
	describeAccess(b, c.Access)
	for _, d := range c.Destinations {
		fmt.Fprintf(b, "destination %s marked=%t\n", d, slices.Contains(c.DeadLetterQueues, d))
	}
	if c.SelectorCache != nil {
		fmt.Fprintf(b, "selector cache %+v\n", *c.SelectorCache)
	}
	if c.Interceptors != nil {
		fmt.Fprintf(b, "interceptors %d\n", len(c.Interceptors.VirtualTopics)+len(c.Interceptors.Composites))
		for _, v := range c.Interceptors.VirtualTopics {
			fmt.Fprintf(b, "virtual topic %+v\n", v)
		}
		for _, v := range c.Interceptors.Composites {
			fmt.Fprintf(b, "composite %+v\n", v)
		}
		for _, f := range c.Interceptors.Filters {
			fmt.Fprintf(b, "filter %s %q (%s)\n", f.Queue, f.Selector, f.Source)
		}
		for _, m := range c.Interceptors.Mirrors {
			fmt.Fprintf(b, "mirrored queues %+v\n", m)
		}
	}
}

// describeAccess writes who there is and what groups may do.
func describeAccess(b *strings.Builder, a *access.Options) {
	if a == nil {
		return
	}
	fmt.Fprintf(b, "access anonymous=%t,%q,%q (%s)\n", a.Anonymous, a.AnonymousUser, a.AnonymousGroup, a.Source)
	for _, u := range a.Users {
		password := string(u.Password)
		if u.Hash != nil {
			password = "hash " + u.Hash.Text()[:16] + "..."
		}
		fmt.Fprintf(b, "user %s %q %q (%s)\n", u.Name, password, u.Groups, u.Source)
	}
	if s, ok := a.Settings.(*SecuritySettings); ok {
		fmt.Fprintf(b, "administrators %q instead=%t\n", a.AdminGroups, a.AnonymousInstead)
		for _, x := range s.settings {
			fmt.Fprintf(b, "security %s %v (%s)\n", x.pattern.text, x.roles, x.source)
		}
	}
	if a.Authorization == nil {
		return
	}
	entry := func(name string, e *access.Entry) {
		if e != nil {
			fmt.Fprintf(b, "%s %s read=%q write=%q admin=%q (%s)\n", name, e.Destination, e.Read, e.Write, e.Admin, e.Source)
		}
	}
	for i := range a.Authorization.Entries {
		entry("authorization", &a.Authorization.Entries[i])
	}
	entry("authorization by default", a.Authorization.Default)
	entry("authorization of temporary ones", a.Authorization.Temporary)
}

// options writes what differs from the default.
func options(o ListenerOptions) string {
	var s []string
	d := DefaultListenerOptions()
	add := func(differs bool, text string, value any) {
		if differs {
			s = append(s, fmt.Sprintf("%s=%v", text, value))
		}
	}
	add(o.MaxFrameBytes != d.MaxFrameBytes, "frame", o.MaxFrameBytes)
	add(o.MaximumConnections != d.MaximumConnections, "connections", o.MaximumConnections)
	add(o.MaximumConsumers != 0, "consumers", o.MaximumConsumers)
	add(o.MaximumProducers != 0, "producers", o.MaximumProducers)
	add(o.MaxInactivity != d.MaxInactivity, "inactivity", o.MaxInactivity)
	add(o.MaxInactivityInitialDelay != d.MaxInactivityInitialDelay, "initial", o.MaxInactivityInitialDelay)
	add(o.SocketBufferBytes != d.SocketBufferBytes, "buffer", o.SocketBufferBytes)
	add(o.NoDelay != d.NoDelay, "nodelay", o.NoDelay)
	add(o.KeepAlive != d.KeepAlive, "keepalive", o.KeepAlive)
	add(o.AllowLinkStealing, "stealing", o.AllowLinkStealing)
	add(o.AnycastPrefix+o.MulticastPrefix != "", "prefixes", o.AnycastPrefix+" "+o.MulticastPrefix)
	add(o.UpdateClusterClients, "update", o.UpdateClusterClients)
	add(o.RebalanceClusterClients, "rebalance", o.RebalanceClusterClients)
	add(o.UpdateClusterClientsOnRemove, "on-remove", o.UpdateClusterClientsOnRemove)
	add(o.UpdateClusterFilter != "", "filter", o.UpdateClusterFilter)
	add(o.TLS != TLSOptions{}, "tls", fmt.Sprintf("%+v", o.TLS))
	if len(s) == 0 {
		return "defaults"
	}
	return strings.Join(s, " ")
}

// policy writes what an entry says.
func policy(p PolicyEntry) string {
	s := p.Destination.String() + " (" + p.Source + ")"
	if p.PrioritizedMessages {
		s += " prioritized"
	}
	if p.PersistJMSRedelivered != nil {
		s += fmt.Sprintf(" marks=%t", *p.PersistJMSRedelivered)
	}
	for _, f := range p.Advisories.Flags() {
		if *f.Value {
			s += " " + f.Name
		}
	}
	if p.Rules.Expiry.Kind != redelivery.UnsetStrategy {
		s += fmt.Sprintf(" expiry=%s:%s", p.Rules.Expiry.Kind, p.Rules.Expiry.DeadLetterQueue)
	}
	if p.Rules.DeadLetterUnrouted || p.Rules.KeepUnroutedDead || p.Rules.Origins != 0 {
		s += fmt.Sprintf(" unrouted=%t kept=%t origins=%d", p.Rules.DeadLetterUnrouted, p.Rules.KeepUnroutedDead, p.Rules.Origins)
	}
	if p.MaxDestinations != 0 {
		s += fmt.Sprintf(" destinations %d", p.MaxDestinations)
	}
	if p.GroupRebalance {
		s += " rebalance"
	}
	if p.LastValueKey != "" {
		s += " last-value " + p.LastValueKey
	}
	if p.MaxConsumers != 0 || p.RingSize != 0 || p.PurgeOnNoConsumers || p.OnlyDeclared {
		s += fmt.Sprintf(" consumers %d ring %d purge %t declared %t", p.MaxConsumers, p.RingSize, p.PurgeOnNoConsumers, p.OnlyDeclared)
	}
	if p.ConsumersBeforeDispatch != 0 || p.TimeBeforeDispatch != 0 {
		s += fmt.Sprintf(" gathers %d within %v", p.ConsumersBeforeDispatch, p.TimeBeforeDispatch)
	}
	if p.Limits != nil {
		s += fmt.Sprintf(" limits=%+v", *p.Limits)
	}
	if p.Recovery != nil {
		s += fmt.Sprintf(" recovery=%+v", *p.Recovery)
	}
	if p.Backlog != nil {
		s += fmt.Sprintf(" backlog=%+v", *p.Backlog)
	}
	if p.SlowConsumers != nil {
		s += fmt.Sprintf(" slow=%+v", *p.SlowConsumers)
	}
	if p.AlwaysRetroactive {
		s += " retroactive"
	}
	if p.StrictTopicOrder {
		s += " one order"
	}
	if p.Lifetime != nil {
		s += fmt.Sprintf(" lifetime=%+v", *p.Lifetime)
	}
	d := p.Rules.DeadLetter
	if d == (redelivery.DeadLetterStrategy{}) {
		return s
	}
	source := message.Destination{Kind: message.Queue, Name: "Q"}
	topic := message.Destination{Kind: message.Topic, Name: "T"}
	sub := redelivery.Subscription{ClientID: "c", Name: "s"}
	return s + fmt.Sprintf(" %s: %s, %s; expired=%t non-persistent=%t ttl=%s", d.Kind, d.Target(source, redelivery.Subscription{}),
		d.Target(topic, sub), d.ProcessExpired, d.ProcessNonPersistent, d.Expiration)
}
