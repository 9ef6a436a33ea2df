package records

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nixiemq/nixie/internal/message"
	"github.com/nixiemq/nixie/internal/store"
)

var writeGolden = flag.Bool("write-golden", false, "write the golden files that are missing for the current format")

// goldenKeys name the records of goldenShard.
var goldenKeys = map[string][]byte{
	"meta":              []byte("v"),
	"queue":             appendQueueKey(nil, false, kindQueue, 7),
	"queue-plain":       appendQueueKey(nil, false, kindQueue, 8),
	"set-aside":         append([]byte{byte(kindAside)}, appendEntryKey(nil, false, kindEntry, 7, 5, 9)...),
	"selectors":         appendQueueKey(nil, false, kindSelectors, 7),
	"entry":             appendEntryKey(nil, false, kindEntry, 7, 2, 12),
	"entry-plain":       appendEntryKey(nil, false, kindEntry, 7, 5, 11),
	"entry-transient":   appendEntryKey(nil, true, kindEntry, 7, 5, 13),
	"entry-grouped":     appendEntryKey(nil, false, kindEntry, 8, 5, 14),
	"body-grouped":      appendSeqKey(nil, false, kindBody, 14),
	"counter-grouped":   appendQueueKey(nil, false, kindCounter, 8),
	"counts":            appendEntryKey(nil, false, kindCounts, 7, 2, 12),
	"counts-delayed":    appendEntryKey(nil, false, kindCounts, 7, 5, 11),
	"counts-unasked":    appendEntryKey(nil, false, kindCounts, 8, 5, 14),
	"counts-transient":  appendEntryKey(nil, true, kindCounts, 7, 5, 13),
	"body":              appendSeqKey(nil, false, kindBody, 10),
	"body-plain":        appendSeqKey(nil, false, kindBody, 11),
	"body-transient":    appendSeqKey(nil, true, kindBody, 13),
	"body-pieces":       appendSeqKey(nil, false, kindBody, 20),
	"body-pieces-all":   appendSeqKey(nil, false, kindBody, 21),
	"piece-20-0":        appendPartKey(nil, false, kindPiece, 20, 0),
	"piece-20-1":        appendPartKey(nil, false, kindPiece, 20, 1),
	"piece-21-0":        appendPartKey(nil, false, kindPiece, 21, 0),
	"piece-21-1":        appendPartKey(nil, false, kindPiece, 21, 1),
	"reference":         appendSeqKey(nil, false, kindReference, 10),
	"staged":            appendSeqKey(nil, false, kindStaged, 22),
	"staged-body":       appendSeqKey(nil, false, kindBody, 22),
	"attempt":           appendPartKey(nil, false, kindAttempt, 900, 4),
	"attempt-transient": appendPartKey(nil, true, kindAttempt, 901, 1),
	"mark":              appendMarkKey(nil, 7, 3),
	"producer":          appendProducerKey(nil, 7, "ID:host-1:1:2:3"),
	"producer-long":     appendProducerKey(nil, 7, producerName(longProducer)),
	"counter":           appendQueueKey(nil, false, kindCounter, 7),
	"floor":             appendLaneKey(nil, kindFloor, 7, 5),
	"due":               appendTimeKey(nil, false, kindDue, 7, TimeKey{1780000001200, 5, 11}),
	"expiry":            appendTimeKey(nil, false, kindExpiry, 7, TimeKey{1790000000123, 2, 12}),
	"job":               appendSeqKey(nil, false, kindJob, 30),
	"job-body":          appendSeqKey(nil, false, kindBody, 30),
	"job-due":           appendJobDueKey(nil, 1780000001200, 30),
	"job-id":            appendJobIDKey(nil, "ID:host-1:1:2:3:77"),
	"job-counter":       appendQueueKey(nil, false, kindCounter, jobsQueue),
	"prepared":          appendSeqKey(nil, false, kindPrepared, 42),
	"prepared-part":     appendPartKey(nil, false, kindPart, 42, 0),
	"prepared-ended":    appendSeqKey(nil, false, kindPrepared, 43),
	"prepared-staged":   appendSeqKey(nil, false, kindStaged, 41),
	"prepared-body":     appendSeqKey(nil, false, kindBody, 41),
}

var longProducer = strings.Repeat("ID:long:", 40)

// goldenShard has a record of each kind.
func goldenShard(t *testing.T) store.Shard {
	t.Helper()
	shard := openShard(t)
	r, err := Open(context.Background(), shard, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, plain, counts, attempt := fullMessage(), &message.Message{}, fullCounts(), fullAttempt(4)
	full := entryFor(m, 12, 10)
	full.Shared, full.Out, full.Overlay = true, message.Pulled, fullOverlay()
	passing := entryFor(plain, 13, 13)
	passing.Transient = true
	commit(t, r, func(b *Batch) {
		b.PutQueue(fullQueue(7))
		b.PutQueue(plainQueue(8))
		b.setAside(appendEntryKey(nil, false, kindEntry, 7, 5, 9), []byte("what was there"), true)
		b.PutSelectors(7, fullQueue(7).Selectors)
		b.PutMessage(10, m, 3)
		b.PutMessage(11, plain, 1)
		b.PutTransientMessage(13, plain)
		b.Append(7, 2, full)
		b.Append(7, 5, entryFor(plain, 11, 11))
		b.Append(7, 5, passing)
		b.PutMessage(14, plain, 1)
		grouped := entryFor(plain, 14, 14)
		grouped.Group, grouped.Mark = "customer 7", -1
		b.Append(8, 5, grouped)
		b.PutCounts(7, 2, 12, &counts)
		b.PutCounts(7, 5, 11, &message.Counts{Failures: 1, Due: 1780000001200, Delay: 1200})
		b.PutDue(7, 5, 11, 1780000001200)
		b.PutCounts(8, 5, 14, &message.Counts{Failures: 1, Unasked: true})
		b.PutTransientCounts(7, 5, 13, &message.Counts{})
		for seq, chunk := range map[uint64]int{20: 4, 21: 2} { // tiny chunks, for files that can be read
			l := &largeBody{seq: seq, message: m}
			b.encodeBody(false, seq, m, 2, chunk)
			l.cut(2, chunk, func() *Batch { return b })
		}
		b.StageMessage("TX:ID:host-1:1:4", 22, plain)
		b.StageMessage("XID:[1,globalId=00ff,branchId=01]", 41, plain)
		b.PutPrepared(fullPrepared())
		b.PutOutcome(&Prepared{Sequence: 43, XID: message.XID{Format: -1, Global: "g"}, At: 1780000000300}, RolledBack)
		b.PutAttempt(900, &attempt)
		b.PutTransientAttempt(901, &message.Attempt{Number: 1})
		b.PutMark(7, 3, message.Pulled, []uint64{12, 11})
		b.PutProducer(7, "ID:host-1:1:2:3", 77, 1780000000000)
		b.PutProducer(7, longProducer, 78, 1780000000000)
		b.PutFloor(7, 5, 11)
		j := fullJob(30)
		b.PutMessage(30, plain, 1)
		b.PutJob(&j)
	})
	return shard
}

// What is on the disks of users must be readable for ever, so the bytes of a
// format never change.
func TestGoldenBytes(t *testing.T) {
	t.Parallel()
	shard := goldenShard(t)
	dir := goldenDir(formatVersion)
	covered := map[kind]bool{}
	for name, k := range goldenKeys {
		v, err := shard.Get(k)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		covered[kind(strings.TrimPrefix(string(k), string(rune(kindTransient)))[0])] = true
		file := filepath.Join(dir, name+".hex")
		got := toHex(k, v)
		want, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) && *writeGolden {
			want, err = []byte(got), os.WriteFile(file, []byte(got), 0o644)
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s differs from what is in users' stores. If the change is wanted: raise formatVersion, "+
				"add a migration from format %d to Open, and keep %s for its test (-golden +now):\n%s", name, formatVersion, dir, d)
		}
	}
	records := 0
	if err := shard.Scan([]byte{0}, []byte{0xff}, func(k, _ []byte) bool { records++; return true }); err != nil {
		t.Fatal(err)
	}
	if records != len(goldenKeys) {
		t.Errorf("%d records, but golden files for %d", records, len(goldenKeys))
	}
	for of, name := range kindNames {
		if !covered[of] {
			t.Errorf("no golden file has a %s record", name)
		}
	}
}

// The files are read as a store, not only compared.
func TestGoldenStoreIsRead(t *testing.T) {
	t.Parallel()
	shard := openShard(t)
	files, err := filepath.Glob(filepath.Join(goldenDir(1), "*.hex"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	put(t, shard, func(b *store.Batch) {
		for _, file := range files {
			k, v := fromHex(t, file)
			if of := kind(k[0]); of == kindEntry || of == kindBody || of == kindPiece {
				b.PutOnce(k, v)
			} else if of != kindTransient {
				b.Put(k, v)
			}
		}
	})
	r, err := Open(context.Background(), shard, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]QueueInfo{fullQueue(7), plainQueue(8)}, r.Queues()); d != "" {
		t.Errorf("queues (-want +got):\n%s", d)
	}
	page, err := r.Page(7, 2, 0, 9)
	if err != nil || len(page) != 1 {
		t.Fatalf("page of %d: %v", len(page), err)
	}
	full := entryFor(fullMessage(), 12, 10)
	full.Shared, full.Out, full.Overlay = true, message.Pulled, fullOverlay()
	if d := cmp.Diff(Stored{Entry: *full, Counts: fullCounts(), HasCounts: true}, page[0]); d != "" {
		t.Errorf("entry (-want +got):\n%s", d)
	}
	page, err = r.Page(8, 5, 0, 9)
	if err != nil || len(page) != 1 || page[0].Entry.Group != "customer 7" || page[0].Entry.Mark != -1 {
		t.Errorf("of a group: %+v, %v", page, err)
	}
	for _, seq := range []uint64{10, 20, 21} {
		m, err := r.Message(&message.Entry{Body: seq})
		if d := cmp.Diff(fullMessage(), m); d != "" || err != nil {
			t.Errorf("message %d: %v (-want +got):\n%s", seq, err, d)
		}
	}
	story, err := r.Story(900)
	if d := cmp.Diff([]message.Attempt{fullAttempt(4)}, story); d != "" || err != nil {
		t.Errorf("story: %v (-want +got):\n%s", err, d)
	}
	producers, err := r.Producers(7)
	if d := cmp.Diff(map[string]int64{"ID:host-1:1:2:3": 77, longProducer: 78}, producers); d != "" || err != nil {
		t.Errorf("producers: %v (-want +got):\n%s", err, d)
	}
	marks, _, err := r.Marks(7)
	if d := cmp.Diff(map[uint64]message.HandOut{11: message.Pulled, 12: message.Pulled}, marks); d != "" || err != nil {
		t.Errorf("marks: %v (-want +got):\n%s", err, d)
	}
	if n := r.LaneCount(7, 5); n.Messages != 1 || r.Floor(7, 5) != 11 {
		t.Errorf("lane 5 has %d messages above %d, want 1 above 11", n.Messages, r.Floor(7, 5))
	}
	prepared := []Prepared{*fullPrepared(), {Sequence: 43, XID: message.XID{Format: -1, Global: "g"}, At: 1780000000300, Outcome: RolledBack}}
	if d := cmp.Diff(prepared, r.Prepared(), cmpopts.IgnoreUnexported(Prepared{})); d != "" {
		t.Errorf("prepared transactions (-want +got):\n%s", d)
	}
	if m, err := r.Message(&message.Entry{Body: 41, SizeBytes: 1024}); err != nil || m == nil {
		t.Errorf("the message of a prepared transaction is %v, %v", m, err)
	}
	if next := r.Next(1); next != firstSequence+strideDefault {
		t.Errorf("next sequence %d, want the first that was not reserved", next)
	}
}

func goldenDir(format int) string { return filepath.Join("testdata", fmt.Sprintf("format%d", format)) }

// toHex shows a record for people: 32 bytes a line, with their text.
func toHex(k, v []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "key\n%svalue\n%s", hexLines(k), hexLines(v))
	return s.String()
}

func hexLines(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		line := b[:min(32, len(b))]
		b = b[len(line):]
		text := strings.Map(func(c rune) rune {
			if c < ' ' || c > '~' {
				return '.'
			}
			return c
		}, string(latin1(line)))
		fmt.Fprintf(&s, "  %-64x |%s|\n", line, text)
	}
	return s.String()
}

// latin1 makes a rune of each byte.
func latin1(b []byte) []rune {
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return runes
}

func fromHex(t failer, file string) (k, v []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for line := range strings.Lines(string(text)) {
		switch line {
		case "key\n":
			continue
		case "value\n":
			k, v = v, nil
			continue
		}
		digits, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		v = append(v, b...)
	}
	return k, v
}
