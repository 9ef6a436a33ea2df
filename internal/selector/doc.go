// Package selector parses and evaluates JMS message selectors: the conditional
// expressions of JMS 1.1 section 3.8.1, with what ActiveMQ adds to them.
//
// A text is parsed once; the Selector that results is immutable, may be used by
// any number of goroutines, and decides about a message by looking up its
// header fields and properties by name. It knows nothing of where they come
// from: a Lookup does. Evaluation allocates nothing, but for "+" on strings, for functions
// and for LIKE with very long patterns. It is linear, and tells its cost in steps, by
// which a queue bounds what a selector may take of its time.
//
// Logic has three values (JMS 3.8.1.2): a comparison with NULL is unknown, and a
// message matches only where the whole is true. The order of binding, loosest
// first:
//
//	OR · AND · NOT · = <> IS · < <= > >= LIKE BETWEEN IN · + - · * / % · unary + - NOT
//
// What ActiveMQ adds, and we too: / and % reckon in doubles, so that 7 / 2 is 3.5
// and a division by 0 is infinite; "+" joins strings; a property alone is a
// condition (false where it is no boolean); % is an operator; comments ("--" to
// the end of its line, and "/* */"); all header fields, not the six of JMS; LIKE
// is false for what is no string, IN is unknown; the prefixes
// "convert_string_expressions:" (a string compares with a number or a boolean by
// what it says) and "hyphenated_props:" (a name may contain "-"), and these with
// "no_" before them; and its functions (function.go).
//
// Where ActiveMQ departs from JMS by accident we follow JMS: NOT binds looser
// than a comparison (NOT a = 1 is NOT (a = 1)); text after the end of the
// selector is an error; 'x' <> missing is unknown on either side; values of
// different kinds are neither equal nor unequal (3.8.1.2: the operation is
// false); strings and booleans have no order; integers have 64 bits throughout.
// XPATH and XQUERY are refused.
package selector
