package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixiemq/nixie/internal/message"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, notices, err := Load(Options{})
	if err != nil || len(notices) != 0 {
		t.Fatal(notices, err)
	}
	want := &Config{
		BrokerName: "localhost",
		Persistent: true,
		DataDir:    "./nixie-data",
		Listeners: []Listener{{Name: "openwire", Protocol: "openwire", Host: "127.0.0.1", Port: 61616,
			URI: "tcp://127.0.0.1:61616", Options: DefaultListenerOptions(), Source: "default"}},
		Admin:        "127.0.0.1:8161",
		HandOutMarks: true,
		Store:        StoreLimits{MinFreeBytes: 256 << 20, MinFreePercent: 2, OnFull: Fail},

		KeepTemporaryQueues: 5 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	off := ""
	all := ":8161"
	for name, c := range map[string]struct {
		opts Options
		want string // in the description; for a refusal "error ..."
	}{
		"memory":                         {Options{Data: ":memory:"}, "data :memory: persistent=false"},
		"no admin":                       {Options{Admin: &off}, `admin ""`},
		"admin on all addresses":         {Options{Admin: &all}, "error --admin: :8161: listens beyond loopback without authentication"},
		"admin on all, permitted":        {Options{Admin: &all, AllowAnonymous: true}, `admin ":8161" anonymous=true`},
		"two listeners":                  {Options{Listen: []string{"tcp://127.0.0.1:1", "nio://[::1]:2"}}, "listener openwire openwire 127.0.0.1:1 (--listen) defaults\nlistener openwire openwire [::1]:2"},
		"listener on all addresses":      {Options{Listen: []string{"tcp://0.0.0.0:1"}}, "error --listen: listener openwire (tcp://0.0.0.0:1): listens beyond loopback"},
		"listener of another protocol":   {Options{Listen: []string{"stomp://127.0.0.1:1"}}, "error --listen: stomp://127.0.0.1:1: STOMP is not offered yet"},
		"listener with a typing error":   {Options{Listen: []string{"tcp://127.0.0.1:1?maximumConections=1"}}, "did you mean maximumConnections?"},
		"a file that is not there":       {Options{File: "nowhere.xml"}, "error nowhere.xml: cannot be read"},
		"a definition without a value":   {Options{Defines: []string{"x"}}, "error -D: x: is not NAME=VALUE"},
		"a definition with an empty one": {Options{Defines: []string{"x="}}, "broker localhost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := describe(Load(c.opts)); !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestErrorKind(t *testing.T) {
	t.Parallel()
	_, _, err := Load(Options{Defines: []string{"x", "y"}})
	if !errors.Is(err, message.ErrInvalid) {
		t.Errorf("%v is not ErrInvalid", err)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 2 {
		t.Errorf("%q", lines)
	}
}

// TestFileFromDisk reads a real file, and refuses one that is too large.
func TestFileFromDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small, large := filepath.Join(dir, "small.xml"), filepath.Join(dir, "large.xml")
	if err := os.WriteFile(small, []byte(`<broker brokerName="${activemq.conf}"/>`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, []byte(strings.Repeat(" ", maxFileBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := Load(Options{File: small})
	if err != nil || c.BrokerName != dir {
		t.Errorf("%+v %v", c, err)
	}
	if _, _, err := Load(Options{File: large}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
}

// TestPolicyMap looks policies up as the broker does (R-MAP-07, R-MAP-16).
func TestPolicyMap(t *testing.T) {
	t.Parallel()
	c := &Config{
		Policies: []PolicyEntry{
			{Destination: message.Destination{Kind: message.Queue, Name: ">"}, Source: "wide"},
			{Destination: message.Destination{Kind: message.Queue, Name: "A.*"}, Source: "narrow"},
		},
		DefaultPolicy: &PolicyEntry{Source: "default"},
	}
	m := c.policyMap()
	for name, want := range map[string]string{"queue://A.B": "narrow", "queue://B": "wide", "topic://A.B": "default"} {
		d, _ := message.ParseDestination(name, message.Queue)
		if p, ok := m.Lookup(d); !ok || p.Source != want {
			t.Errorf("%s: %q %v, want %q", name, p.Source, ok, want)
		}
	}
	if _, ok := new(Config).policyMap().Lookup(message.Destination{Kind: message.Queue, Name: "A"}); ok {
		t.Error("an empty map has an entry")
	}
}

// TestProblemsAreBounded checks that a file of errors does not fill the log.
func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	_, notices, problems := load("<broker>" + strings.Repeat("<nonsense/>", 1000) + "</broker>")
	if len(problems) != maxProblems+1 || !strings.Contains(problems[maxProblems].Text, "800 more") {
		t.Errorf("%d problems, %d notices", len(problems), len(notices))
	}
}

// TestBeanCycles checks that beans which refer to each other end.
func TestBeanCycles(t *testing.T) {
	t.Parallel()
	const shared = `class="org.apache.activemq.broker.region.policy.SharedDeadLetterStrategy"`
	_, _, problems := load(`<beans>
<bean id="a" ` + shared + `><property name="deadLetterQueue" ref="b"/></bean>
<bean id="b" ` + shared + `><property name="deadLetterQueue" ref="a"/></bean>
<broker><plugins><ref bean="a"/></plugins><destinationPolicy><policyMap><policyEntries>
<policyEntry queue="x" deadLetterStrategy="#a"/></policyEntries></policyMap></destinationPolicy></broker></beans>`)
	if len(problems) == 0 {
		t.Error("no problem")
	}
}

// TestManyPolicies checks the limits of a policy map.
func TestManyPolicies(t *testing.T) {
	t.Parallel()
	file := func(n int) string {
		return "<broker><destinationPolicy><policyMap><policyEntries>" +
			strings.Repeat(`<policyEntry queue=">"/>`, n) + "</policyEntries></policyMap></destinationPolicy></broker>"
	}
	c, notices, problems := load(file(maxCompared + 1))
	if len(problems) != 0 || len(c.Policies) != maxCompared+1 || len(notices) != 2 {
		t.Errorf("%v %v", notices, problems)
	}
	if _, _, problems := load(file(maxPolicies + 1)); len(problems) != 1 || !strings.Contains(problems[0].Text, "more than 2000 policy entries") {
		t.Errorf("%v", problems)
	}
}
