// Package jolokia shows a broker as the beans that ActiveMQ has in JMX, over HTTP as
// Jolokia's protocol 7 has it: so that scripts, probes and consoles that ask ActiveMQ's
// /api/jolokia go on. Names, attributes and operations are those of ActiveMQ 5.17
// (section 8 of the specification); what a broker of ours does not know is not there,
// rather than made up.
//
// Its neighbour is broker, which it asks and never goes around; admin mounts it, and
// says who may do what.
//
// Its laws:
//
//   - A reply is a JSON object with a status of its own, and HTTP's is 200, as Jolokia
//     has it. Errors name the Java class that ActiveMQ would have thrown.
//   - What is asked for in one request is done one after another; a failure stops nothing.
//   - Nothing is cut without a word: browse() fails where there is more than it gives.
//   - Every request is bounded: MaxRequestBytes, MaxBulk, MaxBrowse, MaxListed.
package jolokia
