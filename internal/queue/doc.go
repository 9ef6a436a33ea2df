// Package queue is one queue as a pure machine: commands and the time go in,
// effects come out as data. A queue, a durable subscription, a topic consumer's
// backlog and a dead letter queue are all this machine.
//
// It has no goroutine, no clock, no randomness and no store. Its owner (a
// destination of package broker) applies what waits in its mailbox, writes the
// effects that are for the store in one batch, and lets the effects that are for
// the world out when that batch is on disk.
//
//	          Enqueue                 dispatch                 Ack
//	producer ────────► waiting ──────────────────► out ─────────────────► gone
//	                  ▲   ▲  ▲                      │ rollback, recover: stays out,
//	         paged in │   │  └── returned ◄─────────┤ the client redelivers it itself
//	                  │   │      (first again)      │
//	            beyond│   └───── scheduled ◄────────┤ Fail → redelivery.Decide
//	      (store only)│          (has a due time)   └────────────────────► transferred
//	                                                                       (dead letter)
//
// The laws, which the tests check with random commands against a naive queue:
//
//   - an item is in exactly one of waiting, returned, scheduled, out, or gone;
//   - no consumer holds more than its window allows;
//   - items that did not fail leave in the order of their lane and position;
//   - an attempt is counted once, however many signals tell of its end.
package queue
