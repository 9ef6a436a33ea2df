package config

import (
	"testing"
	"time"
)

func TestTransactionTimeout(t *testing.T) { // spec hornetq section 15: transaction-timeout, 300000
	t.Parallel()
	for _, root := range []string{hornetQRoot, artemisRoot} {
		for text, want := range map[string]time.Duration{
			"": 5 * time.Minute,
			"<transaction-timeout>1500</transaction-timeout>": 1500 * time.Millisecond,
			"<transaction-timeout>0</transaction-timeout>":    0,
		} {
			if c := coreConfig(t, root, text); c.TransactionTimeout != want {
				t.Errorf("%q: %v, want %v", text, c.TransactionTimeout, want)
			}
		}
	}
	c, _, err := Load(Options{File: "f.yaml", ReadFile: func(string) ([]byte, error) { return []byte("transactionTimeout: 90s\n"), nil }})
	if err != nil || c.TransactionTimeout != 90*time.Second {
		t.Errorf("%v, %v", c, err)
	}
}
