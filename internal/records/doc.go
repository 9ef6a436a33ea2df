// Package records gives the store the broker's words: keys, encoding and
// counters of everything the broker keeps.
package records
