// Package nixie is the root of NixieMQ, a message broker for what happens to a
// message that fails. The program is cmd/nixie; docs/architecture.md shows the
// house.
package nixie
