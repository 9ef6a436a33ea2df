package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGeneratedFilesAreCurrent regenerates everything in memory and wants what
// is there.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../commands.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(src)
	if err != nil {
		t.Fatal(err)
	}
	there, err := filepath.Glob("../*_gen.go")
	if err != nil || len(there) != len(files) {
		t.Errorf("generated files are %v, %v; want %d", there, err, len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile("../" + name)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date, run go generate (-want +got):\n%s", name, diff)
		}
	}
}

func TestGoName(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"commandId":                 "CommandID",
		"groupID":                   "GroupID",
		"brokerURL":                 "BrokerURL",
		"remoteBlobUrl":             "RemoteBlobURL",
		"networkTTL":                "NetworkTTL",
		"jmsxGroupFirstForConsumer": "JMSXGroupFirstForConsumer",
		"XATransactionId":           "XATransactionID",
		"receivedByDFBridge":        "ReceivedByDFBridge",
		"clientIp":                  "ClientIP",
	}
	for in, want := range tests {
		if got := goName(in); got != want {
			t.Errorf("goName(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestTableErrors checks that a table that makes no sense is refused, and why.
func TestTableErrors(t *testing.T) {
	t.Parallel()
	const rest = "{name: BaseCommand}, {name: Message}, {name: ActiveMQBlobMessage}, {name: ActiveMQDestination}]"
	tests := map[string]struct{ src, says string }{
		"no YAML":           {"types: [", "read table"},
		"no messages":       {"types: [{name: A, code: 1}]", "no type BaseCommand"},
		"unknown parent":    {"types: [{name: A, code: 1, parent: B}, " + rest, "unknown parent B"},
		"unknown wire type": {"types: [{name: A, code: 1, fields: [{name: x, type: complex}]}, " + rest, "unknown wire type"},
		"nested and new": {"types: [{name: A, code: 1, fields: [{name: x, type: nested, of: B}]}, {name: B, code: 2, since: 3}, " + rest,
			"B is not in all versions"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := generate([]byte(test.src))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}
