package main

import (
	be "encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// openTxn begins a transaction with one record and leaves it open until the test ends.
func openTxn(t *testing.T, addr, id, topic string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(id), kgo.TransactionTimeout(time.Minute), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// forge puts the first record of a transaction, of which no coordinator knows, behind the log of a stopped broker: what the
// data of an old broker may hold.
func forge(t *testing.T, dir, topic string, producerID, offset int64) {
	t.Helper()
	r := kmsg.NewRecord()
	r.Value = []byte("nobody's")
	r.Length = int32(len(r.AppendTo(nil)) - 1)
	b := kmsg.NewRecordBatch()
	b.FirstOffset, b.Magic, b.Attributes, b.NumRecords = offset, 2, 1<<4, 1
	b.FirstTimestamp = time.Now().UnixMilli()
	b.MaxTimestamp = b.FirstTimestamp
	b.ProducerID, b.ProducerEpoch, b.FirstSequence = producerID, 3, 0
	b.Records = r.AppendTo(nil)
	raw := b.AppendTo(nil)
	be.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	be.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	f, err := os.OpenFile(filepath.Join(dir, topic+"-0", fmt.Sprintf("%020d.log", 0)), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTransactionsListAndDescribe(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	at := []string{"--brokers", s.addr}
	ok(t, "", append(at, "topic", "create", "orders")...)
	ok(t, "done\n", append(at, "produce", "orders", "--transactional-id", "done")...)
	openTxn(t, s.addr, "open", "orders")
	list := func(flags ...string) string {
		t.Helper()
		var ids []string
		for line := range strings.Lines(ok(t, "", append(append(at, "txn", "list", "-o", "json"), flags...)...)) {
			var row listedTransaction
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			if row.Coordinator != 1 || row.ProducerID < 0 {
				t.Errorf("row %s", line)
			}
			ids = append(ids, row.TransactionalID+" "+row.State)
		}
		return strings.Join(ids, ", ")
	}
	for _, c := range []struct{ want, flags string }{
		{"done CompleteCommit, open Ongoing", ""},
		{"open Ongoing", "--state Ongoing"},
		{"done CompleteCommit", "--pattern d.*"},
		{"", "--older-than 1h"},
		{"", "--producer-id 999999"},
	} {
		if got := list(strings.Fields(c.flags)...); got != c.want {
			t.Errorf("txn list %s: %q, want %q", c.flags, got, c.want)
		}
	}
	out := ok(t, "", append(at, "txn", "describe", "open")...)
	if !regexp.MustCompile(`^open\tOngoing\tproducer \d+ epoch \d+\ttimeout 1m0s\tbegan \S+Z\n  orders-0\n$`).MatchString(out) {
		t.Errorf("txn describe: %q", out)
	}
	for _, c := range []struct {
		code       int
		say, flags string
	}{
		{1, "TRANSACTIONAL_ID_NOT_FOUND", "describe nobody"},
		{2, "there is no state Sleepy", "list --state Sleepy"},
		{2, "--pattern", "list --pattern ("},
		{2, "--older-than", "hanging --older-than -1s"},
		{2, "--partition", "abort orders"},
		{1, "no partition 7", "abort orders --partition 7 --start-offset 0"},
		{1, "no open transaction", "abort orders --partition 0 --start-offset 77"},
		{1, "does not hang", "abort orders --partition 0 --start-offset 2 --yes"},
	} {
		if o := execute(t, "", append(append(at, "txn"), strings.Fields(c.flags)...)...); o.code != c.code || !strings.Contains(o.errout, c.say) {
			t.Errorf("txn %s: exit code %d, %q; want %d and %q", c.flags, o.code, o.errout, c.code, c.say)
		}
	}
	if out := ok(t, "", append(at, "txn", "hanging")...); out != "" {
		t.Errorf("an open transaction hangs: %q", out)
	}
}

func TestHangingTransaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := server(t, dir)
	ok(t, "before\n", "produce", "--brokers", s.addr, "orders")
	s.stop(t, syscall.SIGTERM)
	forge(t, dir, "orders", 777, 1)
	s = serverAt(t, dir, "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	at := []string{"--brokers", s.addr}
	ok(t, "after\n", append(at, "produce", "orders")...)
	consume := append(at, "consume", "orders", "--from-beginning", "--max-messages", "2", "--idle", "300ms")
	if got := ok(t, "", consume...); got != "before\n" {
		t.Fatalf("behind a hanging transaction: %q", got)
	}
	if page := s.page(t, "/metrics"); !strings.Contains(page, "\nmillrace_transactions_hanging{topic=\"orders\"} 1\n") {
		t.Fatalf("the metrics do not show it:\n%s", page)
	}
	out := ok(t, "", append(at, "txn", "hanging", "-o", "json")...)
	var found openTransaction
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("txn hanging: %q: %v", out, err)
	}
	if found.Topic != "orders" || found.StartOffset != 1 || found.ProducerID != 777 || found.ProducerEpoch != 3 || found.Reason == "" {
		t.Fatalf("txn hanging: %+v", found)
	}
	if out := ok(t, "", append(at, "txn", "hanging", "--older-than", "1h")...); out != "" {
		t.Fatalf("older than an hour: %q", out)
	}
	abort := append(at, "txn", "abort", "orders", "--partition", "0", "--start-offset", "1")
	if o := execute(t, "", abort...); o.code != 2 || !strings.Contains(o.errout, "--yes") {
		t.Fatalf("without --yes: exit code %d, %q", o.code, o.errout)
	}
	if out := ok(t, "", append(at, "txn", "hanging", "orders")...); !strings.Contains(out, "producer 777 epoch 3") {
		t.Fatalf("it was ended without --yes: %q", out)
	}
	if out := ok(t, "", append(abort, "--yes")...); out != "aborted orders-0 from offset 1, producer 777 epoch 3\n" {
		t.Fatalf("txn abort: %q", out)
	}
	if got := ok(t, "", consume...); got != "before\nafter\n" {
		t.Fatalf("after the abort: %q", got)
	}
	if out := ok(t, "", append(at, "txn", "hanging")...); out != "" {
		t.Fatalf("after the abort: %q", out)
	}
}
