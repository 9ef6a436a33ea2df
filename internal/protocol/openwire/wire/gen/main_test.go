package main

import (
	"os"
	"path/filepath"
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

// TestTableErrors checks that a table that makes no sense is refused.
func TestTableErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"no YAML":           "types: [",
		"unknown parent":    "types: [{name: A, code: 1, parent: B, fields: []}]",
		"nested and new":    "types: [{name: A, code: 1, since: 1, fields: [{name: x, type: nested, of: B, since: 1}]}, {name: B, code: 2, since: 3, fields: []}]",
		"unknown wire type": "types: [{name: A, code: 1, fields: [{name: x, type: complex}]}]",
	}
	for name, src := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := generate([]byte(src)); err == nil {
				t.Error("no error")
			}
		})
	}
}
