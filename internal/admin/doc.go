// Package admin is what people and their tools can see of a running broker, and
// do to it: JSON over HTTP under /api/v1, metrics for Prometheus under /metrics,
// and the answers that supervisors ask for under /healthz, /livez and /readyz.
// The command line prints the same replies, whose types are exported here.
//
// Its neighbour is broker, which it asks and never goes around; how bodies and
// properties are decoded comes in with the [Options], so that no protocol is
// known here.
//
// Its laws:
//
//   - Reading changes nothing: a page of a queue is looked at, not consumed.
//   - What is refused is answered with JSON, {"error": ..., "kind": ...}, and a
//     status that follows from the kind alone (error.go has the table).
//   - Every request is bounded: bodies by [MaxRequestBytes], pages by
//     [MaxPageMessages], shown bodies by [MaxBodyBytes], metrics by [MaxSeries].
//   - A request that changes something must come from the same origin, where a
//     browser sends it: no foreign page makes a user's browser purge a queue.
package admin
