package record_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/record"
)

// golden is one line of a decoded.jsonl file: a batch, or a record.
type golden struct {
	Kind, File, Codec string
	Position, Size    int
	Attributes        int64
	BaseOffset        int64 `json:"base_offset"`
	BaseSequence      int32 `json:"base_sequence"`
	BaseTimestamp     int64 `json:"base_timestamp"`
	MaxTimestamp      int64 `json:"max_timestamp"`
	Count, Length     int32
	CRC               uint32
	LastOffsetDelta   int32 `json:"last_offset_delta"`
	Magic             int8
	LeaderEpoch       int32  `json:"partition_leader_epoch"`
	ProducerEpoch     int16  `json:"producer_epoch"`
	ProducerID        int64  `json:"producer_id"`
	TimestampType     string `json:"timestamp_type"`
	Transactional     bool
	DeleteHorizon     bool `json:"delete_horizon_set"`
	Offset, Timestamp int64
	Sequence          int32
	Key, Value        *payload
	Headers           []goldenHeader
	Control           json.RawMessage // a bool for batches, a struct for records
	TimestampDelta    int64           `json:"timestamp_delta"`
}

type goldenHeader struct {
	Key   string
	Value *payload
}

// payload is text where it is UTF-8, hex where it is not.
type payload struct{ Text, Hex *string }

func (p *payload) bytes(t *testing.T) []byte {
	t.Helper()
	switch {
	case p == nil:
		return nil
	case p.Text != nil:
		return append([]byte{}, *p.Text...)
	case p.Hex != nil:
		b, err := hex.DecodeString(*p.Hex)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Fatal("a payload with neither text nor hex")
	return nil
}

// goldenPartitions gives the folder of every partition that Kafka wrote.
func goldenPartitions(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/kafka-4.4.0/*/*.decoded.jsonl.gz")
	if err != nil || len(files) < 17 {
		t.Fatalf("found %d decoded partitions, err %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".decoded.jsonl.gz")
	}
	return files
}

// readGolden reads the lines about batches and records, by segment file.
func readGolden(t *testing.T, dir string) map[string][]golden {
	t.Helper()
	f, err := os.Open(dir + ".decoded.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]golden{}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &struct{ Kind *string }{&g.Kind}); err != nil {
			t.Fatal(err)
		}
		if g.Kind != "batch" && g.Kind != "record" {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		out[g.File] = append(out[g.File], g)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func segments(t testing.TB, dir string) []string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no segment in %s, err %v", dir, err)
	}
	return logs
}

func TestKafkaFilesDecode(t *testing.T) {
	t.Parallel()
	for _, dir := range goldenPartitions(t) {
		t.Run(strings.ReplaceAll(strings.TrimPrefix(dir, "testdata/kafka-4.4.0/"), "/", "_"), func(t *testing.T) {
			t.Parallel()
			want := readGolden(t, dir)
			for _, log := range segments(t, dir) {
				buf, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				compareSegment(t, buf, want[filepath.Base(log)])
			}
		})
	}
}

func compareSegment(t *testing.T, buf []byte, want []golden) {
	t.Helper()
	var scratch record.Scratch
	position := 0
	take := func(kind string) golden {
		if len(want) == 0 || want[0].Kind != kind {
			t.Fatalf("position %d: a %s that the truth does not have", position, kind)
		}
		g := want[0]
		want = want[1:]
		return g
	}
	for b, err := range record.Batches(buf) {
		if err != nil {
			t.Fatalf("position %d: %v", position, err)
		}
		compareHeader(t, b, position, take("batch"))
		if err := b.CheckCRC(); err != nil {
			t.Fatalf("position %d: %v", position, err)
		}
		r, err := b.Reader(&scratch)
		if err != nil {
			t.Fatalf("position %d: %v", position, err)
		}
		for r.Next() {
			compareRecord(t, r, take("record"))
		}
		if r.Err() != nil {
			t.Fatalf("position %d: %v", position, r.Err())
		}
		position += len(b)
	}
	if len(want) > 0 {
		t.Fatalf("%d batches or records of the truth were not found", len(want))
	}
}

func compareHeader(t *testing.T, b record.Batch, position int, g golden) {
	t.Helper()
	a := b.Attributes()
	got := golden{
		Kind: "batch", File: g.File, Codec: a.Codec().String(), Position: position, Size: len(b), Attributes: int64(a),
		BaseOffset: b.BaseOffset(), BaseSequence: b.BaseSequence(), BaseTimestamp: b.BaseTimestamp(), MaxTimestamp: b.MaxTimestamp(),
		Count: b.Count(), Length: int32(len(b) - 12), CRC: b.CRC(), LastOffsetDelta: b.LastOffsetDelta(), Magic: b.Magic(),
		LeaderEpoch: b.LeaderEpoch(), ProducerEpoch: b.ProducerEpoch(), ProducerID: b.ProducerID(),
		TimestampType: "CreateTime", Transactional: a.Transactional(), DeleteHorizon: a.DeleteHorizon(),
		Control: json.RawMessage(fmt.Sprint(a.Control())),
	}
	if a.LogAppendTime() {
		got.TimestampType = "LogAppendTime"
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", g) {
		t.Fatalf("position %d:\n got %+v\nwant %+v", position, got, g)
	}
}

func compareRecord(t *testing.T, r *record.Reader, g golden) {
	t.Helper()
	rec := r.Record()
	if rec.Offset != g.Offset || rec.Timestamp != g.Timestamp || r.Sequence() != g.Sequence {
		t.Fatalf("got offset %d, timestamp %d, sequence %d, want %d, %d, %d", rec.Offset, rec.Timestamp, r.Sequence(), g.Offset, g.Timestamp, g.Sequence)
	}
	sameBytes(t, g.Offset, "key", rec.Key, g.Key.bytes(t))
	sameBytes(t, g.Offset, "value", rec.Value, g.Value.bytes(t))
	if len(rec.Headers) != len(g.Headers) {
		t.Fatalf("offset %d: %d headers, want %d", g.Offset, len(rec.Headers), len(g.Headers))
	}
	for i, h := range rec.Headers {
		sameBytes(t, g.Offset, "header name", h.Key, []byte(g.Headers[i].Key))
		sameBytes(t, g.Offset, "header value", h.Value, g.Headers[i].Value.bytes(t))
	}
}

func sameBytes(t *testing.T, offset int64, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		t.Fatalf("offset %d: %s %q, want %q", offset, what, got, want)
	}
}

// TestKafkaFilesEncode builds every batch again from its records. What no codec stands between must come out byte for byte.
func TestKafkaFilesEncode(t *testing.T) {
	t.Parallel()
	equal := 0
	for _, dir := range goldenPartitions(t) {
		for _, log := range segments(t, dir) {
			buf, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			for b, err := range record.Batches(buf) {
				if err != nil {
					t.Fatal(err)
				}
				again := rebuild(t, b)
				if b.Attributes().Codec() != record.None {
					if got, want := allRecords(t, again), allRecords(t, b); !slices.Equal(got, want) {
						t.Fatalf("%s, offset %d: records\n%q\nwant\n%q", log, b.BaseOffset(), got, want)
					}
					continue
				}
				equal++
				if !bytes.Equal(again, b) {
					t.Fatalf("%s, offset %d: built\n%x\nKafka wrote\n%x", log, b.BaseOffset(), again, b)
				}
			}
		}
	}
	if equal < 190 {
		t.Fatalf("only %d batches were compared byte by byte", equal)
	}
}

// rebuild makes the batch anew from what the accessors and the reader say about it.
func rebuild(t *testing.T, b record.Batch) record.Batch {
	t.Helper()
	if m, ok, err := b.Marker(); err != nil {
		t.Fatal(err)
	} else if ok {
		again := record.BuildControl(nil, m)
		again.SetBaseOffset(b.BaseOffset())
		again.SetLeaderEpoch(b.LeaderEpoch())
		return again
	}
	o := record.BuilderOptions{
		Codec: b.Attributes().Codec(), BaseOffset: b.BaseOffset(), LeaderEpoch: b.LeaderEpoch(),
		Transactional: b.Attributes().Transactional(),
	}
	// Also without an id: franz-go's plain batches have sequence 0 then, not -1.
	o.Producer = &record.Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), Sequence: b.BaseSequence()}
	plain := slices.Clone(b) // the reader of a batch with log append time hides the producer's times
	appendTime := b.Attributes().LogAppendTime()
	if appendTime {
		plain.Settle(record.Info{MaxTimestamp: b.MaxTimestamp()})
	}
	var w record.Builder
	w.Reset(o)
	for r, err := range plain.Records(nil) {
		if err != nil {
			t.Fatal(err)
		}
		w.Append(r.Timestamp, r.Key, r.Value, r.Headers)
	}
	again, err := w.Batch()
	if err != nil {
		t.Fatal(err)
	}
	if appendTime {
		again.SetLogAppendTime(b.MaxTimestamp())
	}
	return again
}

// allRecords prints each record, nil told from empty.
func allRecords(t *testing.T, b record.Batch) []string {
	t.Helper()
	var out []string
	for r, err := range b.Records(nil) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%#v", *r))
	}
	return out
}
