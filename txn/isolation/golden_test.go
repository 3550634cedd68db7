package isolation_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
	"github.com/millrace/millrace/txn/producer"
)

// kafkaFiles is where the files of Apache Kafka 4.4.0 lie; the package record describes them.
const kafkaFiles = "../../core/record/testdata/kafka-4.4.0"

func kafkaIndexes(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(kafkaFiles + "/*/*/*.txnindex")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %d transaction indexes, %v", len(files), err)
	}
	return files
}

// TestKafkaIndexes makes the index of every segment anew from the batches, through the producer table, and compares it byte
// by byte with the one that Kafka wrote. A segment without an aborted transaction has no index or an empty one.
func TestKafkaIndexes(t *testing.T) {
	t.Parallel()
	logs, err := filepath.Glob(kafkaFiles + "/*/*/*.log")
	if err != nil || len(logs) < 17 {
		t.Fatalf("found %d segments, %v", len(logs), err)
	}
	entries := 0
	tables := map[string]*producer.Table{} // by partition; its segments come in order
	for _, log := range logs {
		dir := filepath.Dir(log)
		if tables[dir] == nil {
			tables[dir] = new(producer.Table)
		}
		got := indexOf(t, log, tables[dir])
		want, err := os.ReadFile(log[:len(log)-len("log")] + "txnindex")
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n got % x\nwant % x", log, got, want)
		}
		entries += len(want) / isolation.EntrySize
	}
	if entries < 40 {
		t.Errorf("only %d entries were compared", entries)
	}
}

// indexOf replays one segment and gives the bytes of its transaction index.
func indexOf(t *testing.T, log string, table *producer.Table) []byte {
	t.Helper()
	buf, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var index []byte
	for b, err := range record.Batches(buf) {
		if err != nil {
			t.Fatal(err)
		}
		m, ok, err := b.Marker()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case ok:
			first, had := table.ApplyMarker(producer.Marker{ProducerID: m.ProducerID, Epoch: m.ProducerEpoch, Commit: m.Commit}, b.BaseOffset(), m.TimestampMs)
			if had && !m.Commit {
				open, any := table.FirstOpen()
				index = isolation.AppendEntry(index, isolation.EntryFor(m.ProducerID, first, b.BaseOffset(), open, any))
			}
		case b.HasProducer():
			table.Apply(producer.Batch{
				ProducerID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
				BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), Transactional: b.Attributes().Transactional(),
			})
		}
	}
	return index
}

func TestKafkaIndexesParse(t *testing.T) {
	t.Parallel()
	for _, file := range kafkaIndexes(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := isolation.ParseIndex(raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var again []byte
		for _, e := range entries {
			again = isolation.AppendEntry(again, e)
		}
		if !bytes.Equal(again, raw) {
			t.Errorf("%s: % x, want % x", file, again, raw)
		}
	}
}
