package coordinator

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/record"
)

// kafkaLog reads a __transaction_state log that Apache Kafka 4.4.0 wrote.
func kafkaLog(t testing.TB, name string) []Record {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "kafka", name+".log.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	buf, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var log []Record
	for b, err := range record.Batches(buf) {
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range b.Records(nil) {
			if err != nil {
				t.Fatal(err)
			}
			log = append(log, Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
		}
	}
	return log
}

// TestKafkaValues reads every record that Kafka wrote and writes it again, byte for
// byte the same. Two things differ by design: version 0 is read only, and partitions
// are sorted here where Kafka has the order of a hash set.
func TestKafkaValues(t *testing.T) {
	files, err := filepath.Glob("testdata/kafka/*.log.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d logs found: %v", len(files), err)
	}
	same, all, reordered := 0, 0, 0
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".log.gz")
		for i, r := range kafkaLog(t, name) {
			id, ok, err := decodeKey(r.Key)
			if err != nil || !ok {
				t.Fatalf("%s record %d: key %x: %v", name, i, r.Key, err)
			}
			if got := encodeKey(id); !bytes.Equal(got, r.Key) {
				t.Fatalf("%s record %d: key %x, written again %x", name, i, r.Key, got)
			}
			if r.Value == nil {
				continue
			}
			md, err := decodeValue(r.Value)
			if err != nil {
				t.Fatalf("%s record %d: %v", name, i, err)
			}
			if r.Value[1] == 0 {
				continue
			}
			all++
			got := encodeValue(md)
			switch {
			case bytes.Equal(got, r.Value):
				same++
			case len(got) == len(r.Value) && len(md.partitions) > 1:
				reordered++
			default:
				t.Errorf("%s record %d:\nKafka %x\nours  %x", name, i, r.Value, got)
			}
		}
	}
	if all < 1000 || reordered > all/20 {
		t.Fatalf("%d values of version 1, %d the same, %d with other order of partitions", all, same, reordered)
	}
}

// TestKafkaLogsLoad loads each log and looks at where it ends.
func TestKafkaLogsLoad(t *testing.T) {
	for _, c := range []struct {
		name, want string
	}{
		{name: "transaction-state-overflow-0", want: "overflow: CompleteCommit pid=1 epoch=1 last=0 client=v2 timeout=600000 start=1795967096109 update=1795967096113\n"},
		{name: "transaction-state-expired-1", want: ""},
		{name: "transaction-state-v0-2", want: "" +
			"txn-v0-hanging: Ongoing pid=4 epoch=0 client=v0 timeout=600000 start=1795966462126 update=1795966462126 txn-v0-0\n" +
			"txn-v0-p2: CompleteCommit pid=1 epoch=2 client=v0 timeout=600000 start=1795966461841 update=1795966461851\n"},
	} {
		h := newHarness(t)
		h.log = kafkaLog(t, c.name)
		h.restart(len(h.log))
		if got := h.m.Dump(); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
		h.check()
	}
}

// TestKafkaLogGoesOn takes over a log of Kafka in the middle: wherever it stops, the
// producer can go on or be fenced.
func TestKafkaLogGoesOn(t *testing.T) {
	log := kafkaLog(t, "transaction-state-0")
	for n := 1; n <= len(log); n++ {
		h := newHarness(t)
		h.log = log[:n:n]
		h.restart(n)
		for len(h.decisions) > 0 {
			h.carryOut()
		}
		for _, id := range h.m.sorted() {
			to := h.do(func(to Token) Output {
				return h.m.InitProducerID(h.nowMs, to, InitRequest{ID: id, ProducerID: none, Epoch: none, TimeoutMs: 1000, Version: 5})
			})
			for len(h.decisions) > 0 {
				h.carryOut()
			}
			r, ok := h.replies[to].(InitReply)
			if !ok || r.Code != CodeNone {
				t.Fatalf("first %d records: InitProducerId of %s: %v", n, id, h.replies[to])
			}
		}
	}
}

func TestUnreadableRecords(t *testing.T) {
	h := newHarness(t)
	h.run("init id=a")
	good := h.log[0]
	for name, c := range map[string]struct {
		key, value []byte
		want       string
	}{
		"short key":      {[]byte{0, 0, 0, 9, 'a'}, good.Value, "key of 5 bytes"},
		"empty value":    {good.Key, []byte{}, "value of 0 bytes"},
		"cut value":      {good.Key, good.Value[:20], `transactional id "a"`},
		"future version": {good.Key, append([]byte{0, 7}, good.Value[2:]...), "version 7, known are 0 to 1"},
		"state 99":       {good.Key, append(append(bytes.Clone(good.Value[:16]), 99), good.Value[17:]...), "state 99"},
	} {
		err := h.m.Replay(c.key, c.value)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if err := h.m.Replay([]byte{0, 3, 1, 2}, nil); err != nil {
		t.Errorf("a key of another type is passed over: %v", err)
	}
}
