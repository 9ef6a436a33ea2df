// Package queue is one queue as a pure machine: commands and the time go in,
// effects come out as data. A queue, a durable subscription, a topic consumer's
// backlog and a dead letter queue are all this machine.
//
// It has no goroutine, no clock, no randomness and no store. Its owner (a
// destination of package broker) applies what waits in its mailbox, ends the turn,
// writes the effects that are for the store in one batch, and lets the effects
// that are for the world out when that batch is on disk.
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
// # What the owner does
//
//   - It applies commands, then ends the turn, then reads the effects: what an
//     effect refers to (an entry, its counts, a line of its story) is what it is at
//     the end of the turn, and is not to be read later than that.
//   - Effects on an item that is not Stored concern nothing in the store.
//   - It answers a PageIn with one Paged, of entries that are at least as new as
//     the batch with which the PageIn was let out.
//   - It answers a Search with one Searched, in the same way.
//   - It answers a PageTimes with one Timed, in the same way, and keeps the store's
//     index of due times equal to the counts that it saves (Item.Indexed).
//   - It lets nobody but the transaction itself touch what a Prepare or a Foretell
//     listed, and follows with one Settle. Where the transaction is to outlive the process
//     before that, it keeps what Item.Held says and tells the next machine
//     (RestoreHeld).
//
// # Laws
//
// The tests check them with random commands against a naive queue, and with
// crashes between turns:
//
//   - an item is in exactly one of waiting, returned, scheduled, deep, out, limbo,
//     beyond, away or gone, and goes by exactly one of Remove, Transfer and Forget;
//   - no consumer holds more than its window and what widened it allow;
//   - of the items that a consumer wants, those of a lane that never came back leave
//     in the order of their positions, behind those that did;
//   - what a consumer wants comes to it wherever it lies, and none that has looked
//     through everything has anything read for it;
//   - of a message group, no item is handed out while one that was here before it
//     waits, or is to come back (TestGroupLaws);
//   - what is due comes back in the order of its times, before what was never handed
//     out, and what expires does so at its time, however deep in the store it is;
//   - what failed more often than the broker-side policy allows is not handed out again,
//     although the process ended before the policy could be asked;
//   - an attempt is counted once, however many signals tell of its end;
//   - a count never falls while the item is in the queue, unless the rules keep it
//     in its own dead letter queue;
//   - after a crash at any end of a turn nothing is lost, counts are what they were,
//     what may have been in an application's hands is told a counter of 1 at least,
//     and nothing else is.
//
// # What the store knows of a hand-out
//
// An item that is handed out in the turn that stores it says so in its entry. All
// others of a turn share a mark. Both are taken back only when an item stays in the
// queue, and not suspect: by counts, which go before the entry's own word, and by
// writing the mark again without it. Where a failure was counted, a mere hand-out
// adds nothing to what a client is told, and is not noted.
package queue
