package config

import (
	"strings"
	"testing"
)

// TestKahaDB: what a store's element asks for besides the store is honoured.
func TestKahaDB(t *testing.T) {
	t.Parallel()
	load := func(text string) (*Config, []Notice, error) {
		return Load(Options{File: "f.xml", ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
	}
	file := func(broker, kaha string) string {
		return `<broker xmlns="http://activemq.apache.org/schema/core" ` + broker + `><persistenceAdapter><kahaDB directory="d" ` + kaha + `/></persistenceAdapter></broker>`
	}
	for name, c := range map[string]struct {
		broker, kaha string
		prepared     PreparedFate
		remove       bool
	}{
		"nothing":                {"", "", KeepPrepared, false},
		"never":                  {"", `purgeRecoveredXATransactionStrategy="NEVER"`, KeepPrepared, false},
		"commit":                 {"", `purgeRecoveredXATransactionStrategy="commit"`, CommitPrepared, false},
		"rollback":               {"", `purgeRecoveredXATransactionStrategy="ROLLBACK"`, RollBackPrepared, false},
		"delete":                 {"", `deleteAllMessages="true"`, KeepPrepared, true},
		"delete there, not here": {`deleteAllMessagesOnStartup="true"`, `deleteAllMessages="false"`, KeepPrepared, true},
		"delete here, not there": {`deleteAllMessagesOnStartup="false"`, `deleteAllMessages="true"`, KeepPrepared, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, notices, err := load(file(c.broker, c.kaha))
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Prepared != c.prepared || cfg.DeleteAllMessages != c.remove {
				t.Errorf("prepared %d, delete %t", cfg.Prepared, cfg.DeleteAllMessages)
			}
			for _, n := range notices {
				if strings.Contains(n.Text, "purgeRecovered") || strings.Contains(n.Text, "deleteAllMessages") {
					t.Errorf("it is said to be left out: %s", n.Text)
				}
			}
		})
	}
	if _, _, err := load(file("", `purgeRecoveredXATransactionStrategy="maybe"`)); err == nil || !strings.Contains(err.Error(), "neither NEVER nor COMMIT nor ROLLBACK") {
		t.Errorf("a strategy that there is not: %v", err)
	}
}
