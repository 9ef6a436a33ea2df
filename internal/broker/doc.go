// Package broker is the registry of destinations, the routing between them, and
// what clients of every protocol ask for: connections, sessions, producers,
// consumers, transactions. Protocols translate to its calls and decide nothing.
//
//	Connection.Send ─► route ─► mailbox ─► turn of the destination's goroutine:
//	    queue.Machine.Apply ─► effects ─► one records.Batch ─► Commit
//	                                  └─► what leaves the broker waits for its answer
//
// Who owns what:
//
//   - a destination's machine and its entries: the goroutine of that destination;
//   - the registry (destinations, subscriptions, client ids): Broker.mu;
//   - what one client has opened: the goroutine of its connection.
//
// The laws:
//
//   - nothing leaves before the batch that makes it true is on disk, and effects
//     of one destination leave in the order of its turns;
//   - what concerns several destinations (a transaction, a dead letter, a topic's
//     copies) is one batch, made by whoever begins it: the destinations that gain
//     are told of the positions before (queue.Expect) and get the items after
//     (queue.Arrive);
//   - a goroutine never waits for another destination: what destinations send each
//     other goes into mailboxes that take it at once, and is bounded by what
//     clients may have unanswered.
package broker
