package producer_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

// kafkaFiles is where the files of Apache Kafka 4.4.0 lie; the package record describes them.
const kafkaFiles = "../../core/record/testdata/kafka-4.4.0"

// goldenEntry is what the truth says about one producer in a snapshot.
type goldenEntry struct {
	ProducerID       int64 `json:"producer_id"`
	Epoch            int16
	LastSequence     int32 `json:"last_sequence"`
	LastOffset       int64 `json:"last_offset"`
	OffsetDelta      int32 `json:"offset_delta"`
	Timestamp        int64
	CoordinatorEpoch int32 `json:"coordinator_epoch"`
	TxnFirstOffset   int64 `json:"current_txn_first_offset"`
}

func (g goldenEntry) state() producer.State {
	return producer.State{
		ProducerID: g.ProducerID, Epoch: g.Epoch, LastSequence: g.LastSequence, LastTimestampMs: g.Timestamp,
		CoordinatorEpoch: g.CoordinatorEpoch, TxnFirstOffset: g.TxnFirstOffset,
	}
}

type goldenSnapshot struct {
	Kind, File string
	Data       struct {
		Entries []goldenEntry `json:"producer_entries"`
	}
}

// goldenSnapshots reads the truth about the snapshots of one partition, by file.
func goldenSnapshots(t testing.TB, decoded string) map[string][]goldenEntry {
	t.Helper()
	f, err := os.Open(decoded)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]goldenEntry{}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g goldenSnapshot
		if !bytes.Contains(lines.Bytes(), []byte(`"kind":"snapshot"`)) {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		out[g.File] = g.Data.Entries
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func goldenPartitions(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(kafkaFiles + "/*/*.decoded.jsonl.gz")
	if err != nil || len(files) < 17 {
		t.Fatalf("found %d partitions, %v", len(files), err)
	}
	return files
}

func states(t *producer.Table) []producer.State {
	var out []producer.State
	for s := range t.All() {
		out = append(out, s)
	}
	return out
}

func goldenStates(es []goldenEntry) []producer.State {
	var out []producer.State
	for _, e := range es {
		out = append(out, e.state())
	}
	return out
}

// TestKafkaSnapshots loads every snapshot that Kafka wrote, compares it with the truth, and writes it again.
func TestKafkaSnapshots(t *testing.T) {
	t.Parallel()
	n := 0
	for _, decoded := range goldenPartitions(t) {
		for file, want := range goldenSnapshots(t, decoded) {
			path := filepath.Join(strings.TrimSuffix(decoded, ".decoded.jsonl.gz"), file)
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var table producer.Table
			if err := table.Load(raw); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if got, want := fmt.Sprintf("%+v", states(&table)), fmt.Sprintf("%+v", goldenStates(want)); got != want {
				t.Errorf("%s:\n got %s\nwant %s", path, got, want)
			}
			if again := table.Snapshot(nil); !bytes.Equal(again, raw) {
				t.Errorf("%s: written again\n%x\nKafka wrote\n%x", path, again, raw)
			}
			n++
		}
	}
	if n < 20 {
		t.Errorf("only %d snapshots", n)
	}
}

// TestKafkaLogsReplay replays Kafka's own segments and arrives at the snapshots that Kafka took on the way.
func TestKafkaLogsReplay(t *testing.T) {
	t.Parallel()
	for _, decoded := range goldenPartitions(t) {
		dir := strings.TrimSuffix(decoded, ".decoded.jsonl.gz")
		for file, want := range goldenSnapshots(t, decoded) {
			end, err := strconv.ParseInt(strings.TrimSuffix(file, ".snapshot"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			var table producer.Table
			replay(t, dir, end, &table)
			if got, want := fmt.Sprintf("%+v", states(&table)), fmt.Sprintf("%+v", goldenStates(want)); got != want {
				t.Errorf("%s up to %d:\n got %s\nwant %s", dir, end, got, want)
			}
		}
	}
}

// replay feeds the batches below end to the table, and checks on the way that each would have been let in.
func replay(t *testing.T, dir string, end int64, table *producer.Table) {
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
			if b.BaseOffset() >= end || !b.HasProducer() {
				continue
			}
			m, ok, err := b.Marker()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				marker := producer.Marker{ProducerID: m.ProducerID, Epoch: m.ProducerEpoch, CoordinatorEpoch: m.CoordinatorEpoch, Commit: m.Commit}
				if err := table.CheckMarker(marker); err != nil {
					t.Errorf("%s, offset %d: %v", log, b.BaseOffset(), err)
				}
				table.ApplyMarker(marker, b.BaseOffset(), b.MaxTimestamp())
				continue
			}
			data := dataBatch(b)
			if _, dup, err := table.Check(data); dup || err != nil {
				t.Errorf("%s, offset %d: duplicate %v, %v", log, b.BaseOffset(), dup, err)
			}
			table.Apply(data)
		}
	}
}

func dataBatch(b record.Batch) producer.Batch {
	return producer.Batch{
		ProducerID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(), LastSequence: b.LastSequence(),
		BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), TimestampMs: b.MaxTimestamp(),
		Transactional: b.Attributes().Transactional(),
	}
}

// TestKafkaAnswers sends what was once sent to a broker of Kafka 4.4.0, and compares codes and offsets with its answers.
func TestKafkaAnswers(t *testing.T) {
	t.Parallel()
	f, err := os.Open(kafkaFiles + "/answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var table producer.Table
	lines, n, next := bufio.NewScanner(f), 0, int64(-1)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var a struct {
			Group, What string
			Records     []byte
			Code        int16
			BaseOffset  int64 `json:"base_offset"`
		}
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		b, err := record.Single(a.Records)
		if a.Group != "idempotent" || err != nil || (a.Code != 0 && a.Code != 45 && a.Code != 47) || !b.HasProducer() {
			if a.Code == 0 && a.Group == "idempotent" {
				next = a.BaseOffset + int64(b.Count()) // without a producer
			}
			continue
		}
		n++
		if a.What == "duplicate of a batch more than five back" {
			// Six plain batches went before it whose answers were not kept; they stand in the broker's log.
			for seq := range int32(6) {
				table.Apply(producer.Batch{ProducerID: b.ProducerID(), BaseSequence: 2 + seq, LastSequence: 2 + seq, BaseOffset: next, LastOffset: next})
				next++
			}
		}
		if next < 0 {
			next = a.BaseOffset // what came before is not about producers
		}
		code, base := produce(&table, b, &next)
		if code != a.Code || base != a.BaseOffset {
			t.Errorf("%s: code %d, offset %d, want %d and %d", a.What, code, base, a.Code, a.BaseOffset)
		}
	}
	if err := lines.Err(); err != nil || n < 15 {
		t.Fatalf("%d answers, %v", n, err)
	}
}

// produce is what a partition does with a batch: check, append at *next, apply.
func produce(table *producer.Table, b record.Batch, next *int64) (code int16, base int64) {
	data := dataBatch(b)
	dup, isDup, err := table.Check(data)
	if err != nil {
		return codeOf(err), -1
	}
	if isDup {
		return 0, dup.BaseOffset
	}
	data.BaseOffset, data.LastOffset = *next, *next+int64(b.LastOffsetDelta())
	*next = data.LastOffset + 1
	table.Apply(data)
	return 0, data.BaseOffset
}
