package records

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
	"github.com/nixiemq/nixie/internal/store/memstore"
)

// richShard has a small and a large message in lane 5 of queue 7, with all that
// may belong to one. It lets a test overwrite what is written once.
func richShard(t *testing.T) (store.Shard, *Records) {
	t.Helper()
	shard, stop := acquire(t, memstore.Options{})
	t.Cleanup(stop)
	r := open(t, shard)
	commit(t, r, func(b *Batch) {
		b.PutQueue(fullQueue(7))
		b.PutSelectors(7, fullQueue(7).Selectors)
		large := fullMessage()
		large.Body = make([]byte, 3*MinChunkBytes)
		b.PutMessage(1, large, 1)
		b.PutMessage(2, fullMessage(), 2)
		b.Append(7, 5, entryFor(large, 1, 1))
		shared := entryFor(fullMessage(), 2, 2)
		shared.Shared = true
		b.Append(7, 5, shared)
		counts, attempt := fullCounts(), fullAttempt(1)
		b.PutCounts(7, 5, 2, &counts)
		b.PutAttempt(900, &attempt)
		b.PutMark(7, 1, message.HandedOut, []uint64{1})
		b.PutProducer(7, "p", 1, 1)
		b.PutFloor(7, 5, 1)
		b.StageMessage("tx", 4, fullMessage())
	})
	return shard, r
}

// Whatever is read damaged is message.ErrCorrupt, and the text names the key; mend_test.go has
// what is mended at once.
func TestDamageIsNoticedAndNamed(t *testing.T) {
	t.Parallel()
	reopen := func(r *Records) error {
		_, err := Open(context.Background(), r.shard, Options{})
		return err
	}
	page := func(r *Records) error {
		_, err := r.Page(7, 5, 0, 10)
		return err
	}
	read := func(seq uint64) func(r *Records) error {
		return func(r *Records) error {
			_, err := r.Message(&message.Entry{Body: seq})
			return err
		}
	}
	for name, c := range map[string]struct {
		key  []byte
		read func(r *Records) error
	}{
		"meta":      {[]byte("v"), reopen},
		"entry":     {appendEntryKey(nil, false, kindEntry, 7, 5, 2), page},
		"counts":    {appendEntryKey(nil, false, kindCounts, 7, 5, 2), page},
		"body":      {appendSeqKey(nil, false, kindBody, 2), read(2)},
		"piece":     {appendPartKey(nil, false, kindPiece, 1, 1), read(1)},
		"selectors": {appendQueueKey(nil, false, kindSelectors, 7), (*Records).loadSelectors},
		"mark": {appendMarkKey(nil, 7, 1), func(r *Records) error {
			_, _, err := r.Marks(7)
			return err
		}},
		"producer": {appendProducerKey(nil, 7, "p"), func(r *Records) error {
			_, err := r.Producers(7)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shard, r := richShard(t)
			good, err := shard.Get(c.key)
			if err != nil {
				t.Fatal(err)
			}
			for damage, v := range damaged(c.key, good) {
				put(t, shard, func(b *store.Batch) { b.Put(c.key, v) })
				err := c.read(r)
				if !errors.Is(err, message.ErrCorrupt) || !strings.Contains(fmt.Sprint(err), name+" record "+hex.EncodeToString(c.key)) {
					t.Errorf("%s: %v, want ErrCorrupt with the key", damage, err)
				}
			}
		})
	}
}

// damaged are bad forms of a value: some only the checksum finds, some only the
// decoder.
func damaged(k, good []byte) map[string][]byte {
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 4
	fields := good[1 : len(good)-sumBytes]
	bad := map[string][]byte{
		"a bit":           flipped,
		"no value":        {},
		"a short value":   good[:3],
		"another key":     seal([]byte("another"), bytes.Clone(good[:len(good)-sumBytes])),
		"another version": seal(k, append([]byte{formatVersion - 1}, fields...)),
	}
	if kind(k[0]) == kindPiece { // a piece is only bytes
		return bad
	}
	bad["more fields"] = seal(k, append(append([]byte{formatVersion}, fields...), 0))
	if len(fields) > 0 {
		bad["fewer fields"] = seal(k, append([]byte{formatVersion}, fields[:len(fields)-1]...))
	}
	return bad
}

func TestMissingPieceIsDamage(t *testing.T) {
	t.Parallel()
	for _, piece := range []uint32{0, 1, 2, 3} {
		shard, r := richShard(t)
		k := appendPartKey(nil, false, kindPiece, 1, piece)
		put(t, shard, func(b *store.Batch) { b.DeleteRange(k, successor(k)) })
		if _, err := r.Message(&message.Entry{Body: 1}); !errors.Is(err, message.ErrCorrupt) {
			t.Errorf("without piece %d: %v, want ErrCorrupt", piece, err)
		}
	}
}

func TestStoreOfANewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	shard := openShard(t)
	put(t, shard, func(b *store.Batch) { b.Put([]byte("v"), []byte{formatVersion + 1, 9, 9, 9}) })
	_, err := Open(context.Background(), shard, Options{})
	if !errors.Is(err, message.ErrState) || errors.Is(err, message.ErrCorrupt) || !strings.Contains(err.Error(), "newer program") {
		t.Errorf("%v, want ErrState that speaks of a newer program", err)
	}
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{-1, MinChunkBytes - 1, MaxChunkBytes + 1} {
		if _, err := Open(context.Background(), openShard(t), Options{ChunkBytes: chunk}); !errors.Is(err, message.ErrInvalid) {
			t.Errorf("chunks of %d: %v, want ErrInvalid", chunk, err)
		}
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	shard := &tape{Shard: openShard(t), t: t, hold: true}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, shard, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's end", err)
	}
	shard.answer(1)
}

// The chunk size of a store is that of its first Open.
func TestChunkSizeStays(t *testing.T) {
	t.Parallel()
	shard := openShard(t)
	m := &message.Message{Body: make([]byte, 10*MinChunkBytes)}
	r := open(t, shard)
	commit(t, r, func(b *Batch) { b.PutMessage(1, m, 1); b.Append(1, 5, entryFor(m, 1, 1)) })
	r, err := Open(context.Background(), shard, Options{ChunkBytes: MaxChunkBytes})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, r, func(b *Batch) {
		b.PutMessage(2, m, 1)
		b.Append(1, 5, entryFor(m, 2, 2))
		b.Remove(1, 5, entryFor(m, 1, 1), nil, false)
	})
	if a := auditShard(t, shard, false); a.bodies[refKey{seq: 2}] != 10 || len(a.bodies) != 1 {
		t.Errorf("pieces %v, want 10 of body 2 alone", a.bodies)
	}
}
