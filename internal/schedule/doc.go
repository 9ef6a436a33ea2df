// Package schedule reckons when a message that asks for it is sent on to its
// destination: ActiveMQ's delays, periods, repeats and cron lines. It reads no
// clock and keeps nothing: the broker keeps jobs, and asks here when they are due.
//
// Nothing is early, and nothing is rounded: ActiveMQ rounds to half seconds, and
// lets a period drift by what each firing was late (R-EDGE-44).
package schedule
