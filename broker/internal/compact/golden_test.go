package compact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
	"github.com/millrace/millrace/txn/producer"
)

// kafkaLog is a partition folder of testdata.
type kafkaLog struct {
	batches  []record.Batch // of all segments
	active   int64          // base offset of the active segment
	aborted  []isolation.AbortedTxn
	snapshot []byte // the producers at the beginning of the active segment
	config   map[string]string
}

func kafkaLogs(t *testing.T) map[string]*kafkaLog {
	t.Helper()
	f, err := os.Open("testdata/kafka-4.4.0.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
	logs := map[string]*kafkaLog{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		top, _, _ := strings.Cut(name, "/")
		l := logs[top]
		if l == nil {
			l = &kafkaLog{}
			logs[top] = l
		}
		switch path.Ext(name) {
		case ".log":
			for b, err := range record.Batches(files[name]) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				l.batches = append(l.batches, b)
			}
			if l.active, err = strconv.ParseInt(strings.TrimSuffix(path.Base(name), ".log"), 10, 64); err != nil {
				t.Fatal(err)
			}
		case ".txnindex":
			entries, err := isolation.ParseIndex(files[name])
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			l.aborted = append(l.aborted, entries...)
		case ".snapshot":
			l.snapshot = files[name]
		case ".json":
			var d struct {
				Config map[string]string `json:"topic_config"`
			}
			if err := json.Unmarshal(files[name], &d); err != nil {
				t.Fatal(err)
			}
			l.config = d.Config
		}
	}
	return logs
}

// last is what the folder's newest snapshot says of the producers. At the moment of the cleaning nothing newer was there.
func (l *kafkaLog) last(t *testing.T) map[int64]producer.Last {
	t.Helper()
	var table producer.Table
	if err := table.Load(l.snapshot); err != nil {
		t.Fatal(err)
	}
	return table.Last()
}

// TestKafkasCleaner compares a round with what Kafka's cleaner made of the same log, batch for batch.
func TestKafkasCleaner(t *testing.T) {
	logs := kafkaLogs(t)
	for _, step := range []struct {
		from, to string
		first    bool
	}{
		{"4-compact-none-before", "4-compact-none-after", true}, {"4-compact-none-after", "4-compact-none-again", false},
		{"4-compact-lz4-before", "4-compact-lz4-after", true}, {"4-compact-lz4-after", "4-compact-lz4-again", false},
		{"4-compact-txn-before", "4-compact-txn-after", true}, {"4-compact-txn-after", "4-compact-txn-again", false},
		{"4-compact-fast-1", "4-compact-fast-2", false}, {"4-compact-fast-2", "4-compact-fast-3", false},
	} {
		t.Run(step.to, func(t *testing.T) {
			before, after := logs[step.from], logs[step.to]
			input := slices.Clone(before.batches)
			for _, b := range after.batches { // what was appended between the two
				if b.BaseOffset() > input[len(input)-1].LastOffset() {
					input = append(input, b)
				}
			}
			input = slices.DeleteFunc(input, func(b record.Batch) bool { return b.BaseOffset() >= after.active })
			dirty := before.active
			if step.first {
				dirty = 0
			}
			retention := int64(86400000)
			if v, ok := after.config["delete.retention.ms"]; ok {
				var err error
				if retention, err = strconv.ParseInt(v, 10, 64); err != nil {
					t.Fatal(err)
				}
			}
			r := Round{
				NowMs: cleanedAt(before, after, retention), DeleteRetentionMs: retention, End: after.active,
				Last: after.last(t), Aborted: before.aborted,
			}
			got, index := run(t, input, dirty, r)
			want := slices.DeleteFunc(slices.Clone(after.batches), func(b record.Batch) bool { return b.BaseOffset() >= after.active })
			same(t, got, want)
			if fmt.Sprint(index) != fmt.Sprint(after.aborted) {
				t.Errorf("transaction index %v, Kafka's is %v", index, after.aborted)
			}
		})
	}
}

// cleanedAt finds out when Kafka cleaned: a delete horizon that is new tells it exactly; without one it was after everything.
func cleanedAt(before, after *kafkaLog, retentionMs int64) int64 {
	known := map[int64]bool{}
	now := int64(0)
	for _, b := range before.batches {
		if b.Attributes().DeleteHorizon() {
			known[b.BaseTimestamp()] = true
		}
	}
	for _, b := range after.batches {
		now = max(now, b.MaxTimestamp())
	}
	for _, b := range after.batches {
		if b.Attributes().DeleteHorizon() && !known[b.BaseTimestamp()] {
			now = b.BaseTimestamp() - retentionMs
		}
	}
	return now
}

// run is a whole round over a log in memory.
func run(t testing.TB, input []record.Batch, dirty int64, r Round) (out []record.Batch, index []isolation.AbortedTxn) {
	t.Helper()
	r.Table = NewTable(1 << 20)
	x := NewIndex(r.Table, dirty, r.Aborted)
	for _, b := range input {
		if b.LastOffset() < dirty {
			continue
		}
		if more, err := x.Add(b); !more || err != nil {
			t.Fatal(more, err)
		}
	}
	r.Indexed = x.Next()
	f := NewFilter(r)
	for _, b := range input {
		kept, err := f.Apply(b)
		if err != nil {
			t.Fatal(err)
		}
		if kept != nil {
			out = append(out, bytes.Clone(kept))
		}
	}
	return out, f.TakeAborted()
}

// same compares headers and records, and all bytes where no codec is in the way.
func same(t *testing.T, got, want []record.Batch) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("batch %d is missing: %s", i, describe(want[i]))
		case i >= len(want):
			t.Errorf("batch %d is not Kafka's: %s", i, describe(got[i]))
		case describe(got[i]) != describe(want[i]):
			t.Errorf("batch %d\n got %s\nwant %s", i, describe(got[i]), describe(want[i]))
		case got[i].Attributes().Codec() == record.None && !bytes.Equal(got[i], want[i]):
			t.Errorf("batch %d: other bytes\n got %x\nwant %x", i, got[i], want[i])
		}
	}
}

func describe(b record.Batch) string {
	s := fmt.Sprintf("%d-%d epoch %d attributes %d base time %d max %d producer %d/%d/%d count %d:", b.BaseOffset(), b.LastOffset(), b.LeaderEpoch(),
		b.Attributes(), b.BaseTimestamp(), b.MaxTimestamp(), b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.Count())
	for r, err := range b.Records(nil) {
		if err != nil {
			return s + err.Error()
		}
		s += fmt.Sprintf(" %d@%d %q=%q", r.Offset, r.Timestamp, r.Key, r.Value)
	}
	return s
}
