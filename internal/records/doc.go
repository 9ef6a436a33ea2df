// Package records gives the store the broker's words: it knows the keys, the
// encoding and the counters of everything the broker keeps, and nothing of why
// it is kept. Below it is store, which knows neither; above it is the broker,
// which sees no key.
//
// # Laws
//
// After every batch, so also after a crash that kept any number of the batches
// handed over (TestEveryPrefixOfTheBatchesIsWhole):
//
//   - an entry has its body;
//   - a body has an entry, or a staging record, which the next Open clears away
//     unless a prepared transaction names it;
//   - the counters of a lane say what a scan of the lane would;
//   - a sequence that any kept record names is never handed out again.
//
// Counters, the references of shared bodies and the reservation of sequences
// depend on all batches before, so they are decided when a batch is handed over,
// under one mutex; everything else in a batch is known to its maker alone.
//
// # Layout
//
// Integers in keys are big-endian. q is a queue (4 bytes), lane one byte, pos,
// seq, story and id 8 bytes, number 4, piece 4.
//
//	v                     format, sequence reservation, chunk size    Put
//	q q                   a queue or durable subscription             Put, Delete
//	e q lane pos          entry of a queue                            PutOnce, DeleteOnce
//	d q lane pos          counts of an entry that came back           Put, Delete
//	m seq                 message: header, and body where small       PutOnce, DeleteOnce
//	b seq piece           piece of a large body                       PutOnce, DeleteOnce
//	r seq                 references of a body, where more than one   Put, Delete
//	x seq                 body, or pieces, of what is not true yet    Put, Delete
//	l story number        attempt: a line of a message's story        Put, Delete
//	h q id                hand-out mark: positions handed out         Put, Delete
//	u q producer          last sequence of a producer                 Put, Delete
//	o q                   selectors of the consumers of a queue       Put, Delete
//	n q                   messages and bytes, by lane                 Put, once a batch
//	f q lane              floor: no live entry is below               Put, and DeleteRange of what was
//	s q time lane pos     entry by when it is due                     Put, Delete
//	y q time lane pos     entry by when it expires                    Put, Delete
//	j seq                 job: a message that is to be sent on later  Put, Delete
//	w due seq             the same by when that is                    Put, Delete
//	k id                  the same by its id                          Put, Delete
//	p seq                 prepared transaction                        Put, Delete
//	i seq number          part of one: its sends and acks             Put, Delete
//	z key                 a damaged record, by its key                Put
//	t e… d… y… m… b… r… l… the same of what ends with the process      DeleteRange at Open
//
// Entries are in arrival order within a lane because positions are. A page of
// a queue is a scan of e beside a scan of d over the same range.
//
// A value is
//
//	version (1 byte) | fields | CRC-32C of key, version and fields (4 bytes, big-endian)
//
// with fields as varints, single bytes and strings behind their length. The
// checksum covers the key, so that a value under the wrong key is damage too.
//
// # Large bodies
//
// Where body and properties together are above the chunk size c, the body lies
// in n = ceil((body + properties) / c) pieces of about equal length (and the
// properties before it, where they alone are above c). So n follows from
// Message.SizeBytes, which entries carry, and the pieces can be deleted without
// reading the header. c is decided when a store is created.
//
// Pieces of very large bodies are handed over ahead of their batch, under a
// staging record that the batch itself deletes.
//
// # References
//
// A body with one reference has no r record, so the usual message costs none.
// Counts of shared bodies are kept in memory while a batch that changed them is
// unanswered, since the store need not show its effect before, and as long as
// there is room after that; else they are read.
//
// # Format versions
//
// formatVersion is in v and in front of each value. testdata/formatN has the
// bytes of each kind of record as format N writes them, and a test that fails
// when the code writes others. A store of a newer format is refused, so a record that
// cannot be decoded is damaged, and is mended: a program that writes what older ones
// cannot decode must raise the format. There is no older format than 1.
package records
