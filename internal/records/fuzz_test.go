package records

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

// again decodes fields of a kind and encodes what it found; nil where they are
// not valid.
var again = map[kind]func(f []byte) []byte{
	kindMeta: func(f []byte) []byte {
		reserved, chunk, ok := decodeMeta(&reader{b: f})
		return valid(ok, func() []byte { return appendMeta(nil, reserved, chunk) })
	},
	kindQueue: func(f []byte) []byte {
		var i QueueInfo
		return valid(decodeQueue(&reader{b: f}, &i), func() []byte { return appendQueue(nil, &i) })
	},
	kindSelectors: func(f []byte) []byte {
		all, ok := decodeSelectors(&reader{b: f})
		return valid(ok, func() []byte { return appendSelectors(nil, all) })
	},
	kindEntry: func(f []byte) []byte {
		var e message.Entry
		return valid(decodeEntry(&reader{b: f}, &e), func() []byte { return must(appendEntry(nil, &e)) })
	},
	kindCounts: func(f []byte) []byte {
		var c message.Counts
		return valid(decodeCounts(&reader{b: f}, &c), func() []byte { return appendCounts(nil, &c) })
	},
	kindBody: func(f []byte) []byte {
		m, s, ok := decodeBody(f)
		return valid(ok && s.pieces == 0, func() []byte { return must(appendBody(nil, m, 0, 0)) })
	},
	kindAttempt: func(f []byte) []byte {
		var a message.Attempt
		return valid(decodeAttempt(&reader{b: f}, &a), func() []byte { return appendAttempt(nil, &a) })
	},
	kindMark: func(f []byte) []byte {
		var how message.HandOut
		var positions []uint64
		ok := decodeMark(&reader{b: f}, func(pos uint64, h message.HandOut) { how, positions = h, append(positions, pos) })
		return valid(ok && len(positions) > 0, func() []byte { return appendMark(nil, how, positions) })
	},
	kindProducer: func(f []byte) []byte {
		producer, seq, at, ok := decodeProducer(&reader{b: f})
		return valid(ok && len(producer) > maxProducerKey, func() []byte { return appendProducer(nil, producer, seq, at) })
	},
	kindCounter: func(f []byte) []byte {
		s := &queueState{}
		ok := decodeCounter(&reader{b: f}, func(l Lane, c Count) { s.lanes = append(s.lanes, laneState{lane: l, durable: c}) })
		for _, l := range s.lanes {
			ok = ok && l.durable != (Count{})
		}
		return valid(ok, func() []byte { return appendCounter(nil, s) })
	},
	kindFloor: func(f []byte) []byte {
		floor, ok := decodeFloor(&reader{b: f})
		return valid(ok, func() []byte { return appendFloor(nil, floor) })
	},
	kindJob: func(f []byte) []byte {
		var j Job
		return valid(decodeJob(&reader{b: f}, &j), func() []byte { return appendJob(nil, &j) })
	},
	kindStaged: func(f []byte) []byte {
		size, tx, ok := decodeStaged(&reader{b: f})
		return valid(ok, func() []byte { return appendStaged(nil, size, tx) })
	},
	kindPrepared: func(f []byte) []byte {
		var p Prepared
		return valid(decodePrepared(&reader{b: f}, &p), func() []byte { return appendPrepared(nil, &p) })
	},
	kindAside: func(f []byte) []byte {
		r := &reader{b: f}
		raw, recount, ok := decodeAside(r)
		return valid(ok, func() []byte {
			if recount {
				return append([]byte{1}, raw...)
			}
			return append([]byte{0}, raw...)
		})
	},
	kindPart: func(f []byte) []byte {
		var p Prepared
		return valid(decodePart(&reader{b: f}, &p), func() []byte { return appendPart(nil, p.Sends, p.Acks) })
	},
}

func valid(ok bool, f func() []byte) []byte {
	if !ok {
		return nil
	}
	return f()
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err) // a decoded value has only types that are encoded
	}
	return b
}

// Fields of any content are decoded without panic and in memory bounded by their
// length, and what is valid is what would be written.
func FuzzFields(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(goldenDir(formatVersion), "*.hex"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		k, v := fromHex(f, file)
		of := kind(bytes.TrimPrefix(k, []byte{byte(kindTransient)})[0])
		f.Add(byte(of), v[1:len(v)-sumBytes])
	}
	f.Add(byte(kindBody), bytes.Repeat([]byte{0xff}, 40))
	f.Add(byte(kindMark), append([]byte{1}, bytes.Repeat([]byte{0x7f}, 40)...))
	f.Fuzz(func(t *testing.T, of byte, fields []byte) {
		decode := again[kind(of)]
		if decode == nil {
			return
		}
		kept := bytes.Clone(fields)
		if got := decode(fields); got != nil && !bytes.Equal(got, kept) {
			t.Errorf("%q is read as what is written %q", kept, got)
		}
		if !bytes.Equal(fields, kept) {
			t.Error("decoding changed its input")
		}
	})
}

// Whatever is in the place of a record, the store is opened and read, unless it is that of
// the store itself.
func FuzzDamage(f *testing.F) {
	for which := range uint8(30) {
		f.Add(which, []byte{})
		f.Add(which, []byte{formatVersion, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	}
	f.Fuzz(func(t *testing.T, which uint8, value []byte) {
		w := newWard(t)
		var keys [][]byte
		if err := w.shard.Scan([]byte{0}, []byte{byte(kindMeta)}, func(k, _ []byte) bool {
			keys = append(keys, bytes.Clone(k))
			return true
		}); err != nil {
			t.Fatal(err)
		}
		k := keys[int(which)%len(keys)]
		for _, v := range [][]byte{value, seal(k, append([]byte{formatVersion}, value...))} {
			put(t, w.shard, func(b *store.Batch) {
				b.Delete(k)
				if of := kind(k[0]); of == kindEntry || of == kindBody || of == kindPiece {
					b.PutOnce(k, v)
				} else {
					b.Put(k, v)
				}
			})
			w.reopen()
			w.readAll()
		}
	})
}

// Every kind of record that has fields of more than bytes is fuzzed.
func TestFuzzCoversAllKinds(t *testing.T) {
	t.Parallel()
	for of, name := range kindNames {
		if again[of] == nil && of != kindPiece && of != kindReference && of != kindJobDue && of != kindJobID && of != kindDue && of != kindExpiry {
			t.Errorf("%s records are not fuzzed", name)
		}
	}
}
