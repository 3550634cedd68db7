package isolation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
)

// partitionOf reads all batches of one partition that Kafka wrote, and the entries of all its indexes.
func partitionOf(t *testing.T, dir string) (batches []record.Batch, index []isolation.AbortedTxn) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		buf, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range record.Batches(buf) {
			if err != nil {
				t.Fatal(err)
			}
			batches = append(batches, b)
		}
		raw, err := os.ReadFile(log[:len(log)-len("log")] + "txnindex")
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		entries, err := isolation.ParseIndex(raw)
		if err != nil {
			t.Fatal(err)
		}
		index = append(index, entries...)
	}
	return batches, index
}

// abortedByMarker looks forward from each transactional batch for the producer's next marker: the truth, without any index.
func abortedByMarker(t *testing.T, batches []record.Batch, i int) bool {
	t.Helper()
	if !batches[i].Attributes().Transactional() {
		return false
	}
	for _, b := range batches[i+1:] {
		m, ok, err := b.Marker()
		if err != nil {
			t.Fatal(err)
		}
		if ok && m.ProducerID == batches[i].ProducerID() {
			return !m.Commit
		}
	}
	return false // still open: beyond the last stable offset
}

// TestFilterOnKafkaFiles reads every transactional partition that Kafka wrote from every batch on, with the list that a
// fetch from there gets, and compares with what the markers say.
func TestFilterOnKafkaFiles(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob(kafkaFiles + "/2-*/*")
	if err != nil {
		t.Fatal(err)
	}
	hidden := 0
	for _, dir := range dirs {
		if filepath.Ext(dir) == ".gz" {
			continue
		}
		batches, index := partitionOf(t, dir)
		end := batches[len(batches)-1].LastOffset() + 1
		for start, first := range batches {
			list := isolation.Collect(nil, first.BaseOffset(), end, slices.Values([][]isolation.AbortedTxn{index}))
			f := isolation.NewFilter(list)
			for i := start; i < len(batches); i++ {
				b := batches[i]
				got, err := f.Hides(b)
				if err != nil {
					t.Fatal(err)
				}
				aborted := abortedByMarker(t, batches, i)
				if want := b.Attributes().Control() || aborted; got != want {
					t.Errorf("%s from %d: the batch at %d is hidden: %v, want %v", dir, first.BaseOffset(), b.BaseOffset(), got, want)
				}
				if aborted && got {
					hidden++
				}
			}
		}
	}
	if hidden < 500 {
		t.Errorf("only %d batches were hidden", hidden)
	}
}

func ExampleFilter() {
	build := func(offset, producer int64) record.Batch {
		var w record.Builder
		w.Reset(record.BuilderOptions{BaseOffset: offset, Producer: &record.Producer{ID: producer}, Transactional: true})
		w.Append(0, nil, []byte("v"), nil)
		b, err := w.Batch()
		if err != nil {
			panic(err)
		}
		return b
	}
	abort := record.BuildControl(nil, record.Marker{ProducerID: 7})
	abort.SetBaseOffset(2)
	f := isolation.NewFilter([]isolation.AbortedTxn{{ProducerID: 7, FirstOffset: 0}})
	for _, b := range []record.Batch{build(0, 7), build(1, 8), abort, build(3, 7)} {
		hides, err := f.Hides(b)
		fmt.Println(b.BaseOffset(), hides, err)
	}
	// Output:
	// 0 true <nil>
	// 1 false <nil>
	// 2 true <nil>
	// 3 false <nil>
}
