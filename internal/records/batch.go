package records

import "github.com/nixiemq/nixie/internal/message"

// A Batch collects changes that take effect together.
type Batch struct{}

// Empty reports whether the batch holds nothing.
func (b *Batch) Empty() bool { return true }

// SizeBytes is about what the batch takes in a log.
func (b *Batch) SizeBytes() int { return 0 }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {}

// Relax says that the batch may be lost in a crash.
func (b *Batch) Relax() {}

// PutQueue stores a queue.
func (b *Batch) PutQueue(i QueueInfo) {}

// DropQueue removes everything of a queue.
func (b *Batch) DropQueue(q QueueID) {}

// PutMessage stores a body with its number of references.
func (b *Batch) PutMessage(seq uint64, m *message.Message, refs int) {}

// PutTransientMessage stores a body that does not outlive the process.
func (b *Batch) PutTransientMessage(seq uint64, m *message.Message) {}

// StageMessage stores a body of a transaction that is not committed.
func (b *Batch) StageMessage(tx string, seq uint64, m *message.Message) {}

// Unstage makes a staged body permanent.
func (b *Batch) Unstage(tx string, seq uint64) {}

// DropStaged deletes a staged body.
func (b *Batch) DropStaged(tx string, seq uint64) {}

// Append adds an entry to a queue.
func (b *Batch) Append(q QueueID, lane Lane, e *message.Entry) {}

// Remove takes an entry out of a queue.
func (b *Batch) Remove(q QueueID, lane Lane, e *message.Entry, c *message.Counts, keepBody bool) {}

// PutCounts stores the counts of an entry.
func (b *Batch) PutCounts(q QueueID, lane Lane, pos uint64, c *message.Counts) {}

// DropCounts removes the counts of an entry.
func (b *Batch) DropCounts(q QueueID, lane Lane, pos uint64) {}

// PutTransientCounts is PutCounts for a transient entry.
func (b *Batch) PutTransientCounts(q QueueID, lane Lane, pos uint64, c *message.Counts) {}

// DropTransientCounts is DropCounts for a transient entry.
func (b *Batch) DropTransientCounts(q QueueID, lane Lane, pos uint64) {}

// PutAttempt stores a line of a story.
func (b *Batch) PutAttempt(story uint64, a *message.Attempt) {}

// DropAttempt removes a line of a story.
func (b *Batch) DropAttempt(story uint64, number int) {}

// PutTransientAttempt is PutAttempt for the story of a transient entry.
func (b *Batch) PutTransientAttempt(story uint64, a *message.Attempt) {}

// DropTransientAttempt is DropAttempt for the story of a transient entry.
func (b *Batch) DropTransientAttempt(story uint64, number int) {}

// PutMark stores a hand-out mark.
func (b *Batch) PutMark(q QueueID, id MarkID, how message.HandOut, positions []uint64) {}

// DropMark removes a hand-out mark.
func (b *Batch) DropMark(q QueueID, id MarkID) {}

// PutProducer stores the last sequence of a producer.
func (b *Batch) PutProducer(q QueueID, producer string, seq int64, at int64) {}

// DropProducer forgets a producer.
func (b *Batch) DropProducer(q QueueID, producer string) {}

// PutFloor says that no live entry is below floor.
func (b *Batch) PutFloor(q QueueID, lane Lane, floor uint64) {}

// AddReferences counts n more entries that refer to a body.
func (b *Batch) AddReferences(seq uint64, n int) {}

// AddTransientReferences is AddReferences for a transient body.
func (b *Batch) AddTransientReferences(seq uint64, n int) {}
