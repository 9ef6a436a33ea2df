// Package policy answers questions about a configuration before a message asks
// them: what holds for a destination and which line decided it ([Explain]), how
// one message would fare ([Simulate]), and what in a configuration will surprise
// its owner ([Lint]).
//
// Its neighbours are config, which says what holds for a destination, and
// redelivery, which takes every decision here as it does in the broker: an answer
// is what the broker will do, not a second opinion about it. The command line and
// the admin listener both ask here, with the same words ([Params]), and print or
// send the same answers.
//
// Its laws: it is pure (no clock, no file, no network; chance comes from a seed
// that the answer names), it changes nothing, and every question is bounded.
//
// Times in answers are milliseconds since the message was first delivered.
package policy
