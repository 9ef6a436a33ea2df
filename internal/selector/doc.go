// Package selector parses and evaluates JMS message selectors: the conditional
// expressions of JMS 1.1 section 3.8.1, with what ActiveMQ adds to them.
//
// A text is parsed once; the Selector that results is immutable, may be used by
// any number of goroutines, and decides about a message by looking up its
// header fields and properties by name. It knows nothing of where they come
// from: a Lookup does.
//
// Logic has three values (section 3.8.1.2): what compares with NULL, or compares
// values of kinds that do not compare, is unknown, and a message matches only
// where the whole is true.
package selector
