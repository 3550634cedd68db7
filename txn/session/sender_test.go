package session_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/txn/session"
)

// writer is a producer in its world.
type writer struct {
	*world
	producer *session.Producer
	line     *line
	group    session.Generation
}

func newWriter(t *testing.T) *writer {
	w := newWorld(t)
	l := new(line)
	c, err := session.Connect(w.ctx, session.ClusterOptions{Seeds: w.seeds, Dial: l.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p, err := c.NewProducer(w.ctx, session.ProducerOptions{TransactionalID: unique(t, "id")})
	if err != nil {
		t.Fatal(err)
	}
	return &writer{w, p, l, session.Generation{Group: unique(t, "group")}}
}

func (w *writer) send(r *session.Record, ack *session.Ack) {
	w.t.Helper()
	if err := w.producer.Send(w.ctx, r, ack); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) commit() error { return w.producer.Commit(w.ctx, nil, w.group) }

// limited makes a topic with a bound on its batches.
func (w *writer) limited(bytes int) string {
	w.t.Helper()
	name, most := unique(w.t, "limited"), fmt.Sprint(bytes)
	if _, err := kadm.NewClient(w.admin).CreateTopic(w.ctx, 1, 1, map[string]*string{"max.message.bytes": &most}, name); err != nil {
		w.t.Fatal(err)
	}
	return name
}

// fetched reads a partition to its stable end.
func (w *writer) fetched(topic string, part int32) (all []session.Record) {
	w.t.Helper()
	c, err := session.Connect(w.ctx, session.ClusterOptions{Seeds: w.seeds})
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	tp := session.TopicPartition{Topic: topic, Partition: part}
	ends, err := c.List(w.ctx, session.End, []session.TopicPartition{tp})
	if err != nil {
		w.t.Fatal(err)
	}
	r := c.NewReader(session.ReaderOptions{})
	defer r.Close()
	for f := r.Add(tp, 0); ; {
		if rec, ok := f.Head(); ok {
			keep := *rec
			keep.Key, keep.Value, keep.Headers = slices.Clone(rec.Key), slices.Clone(rec.Value), slices.Clone(rec.Headers)
			all = append(all, keep)
			f.Pop()
			continue
		}
		if f.Position() >= ends[tp] {
			return all
		}
		select {
		case <-r.Arrived():
		case <-w.ctx.Done():
			w.t.Fatal(w.ctx.Err())
		}
	}
}

// What is sent arrives as it is, in order and where its key belongs, in batches
// smaller and larger than one, over several transactions.
func TestEverythingArrivesInOrder(t *testing.T) {
	t.Parallel()
	const parts = 3
	w := newWriter(t)
	topic := w.topic("out", parts)
	var want [parts][]session.Record
	var acks [parts]session.Ack
	n := 0
	for _, size := range []int{1, 50, 3000, 1} {
		for range size {
			key := fmt.Appendf(nil, "key-%d", n%17)
			r := session.Record{
				Topic: topic, Partition: session.ByKey, Key: key, Value: slices.Repeat([]byte{byte(n)}, n*7%1500),
				Time: time.UnixMilli(int64(1000 + n)), Headers: []session.Header{{Key: "n", Value: fmt.Append(nil, n)}, {Key: "none"}}[:n%3],
			}
			p := partition.ForKey(key, parts)
			if n%5 == 0 { // by name, elsewhere
				p = int32(n) % parts
				r.Partition = p
			}
			if n%7 == 0 {
				r.Value = nil
			}
			want[p] = append(want[p], r)
			w.send(&r, &acks[p])
			n++
		}
		if got := w.producer.Sent(); got != int64(size) {
			t.Errorf("%d sent, want %d", got, size)
		}
		if err := w.commit(); err != nil {
			t.Fatal(err)
		}
	}
	for p := range want {
		got := w.fetched(topic, int32(p))
		if len(got) != len(want[p]) {
			t.Fatalf("partition %d has %d records, want %d", p, len(got), len(want[p]))
		}
		for i, r := range want[p] {
			g := got[i]
			g.Offset, g.LeaderEpoch, r.Partition = 0, 0, int32(p)
			if fmt.Sprint(g) != fmt.Sprint(r) || (g.Value == nil) != (r.Value == nil) {
				t.Fatalf("partition %d, record %d:\n%v, want\n%v", p, i, g, r)
			}
		}
		if last := got[len(got)-1].Offset; acks[p].Next() != last+1 {
			t.Errorf("partition %d is acknowledged up to %d, its last offset is %d", p, acks[p].Next(), last)
		}
	}
}

// Batches that are too large for a topic are made smaller with the next attempt; a
// record that is too large by itself is refused for good.
func TestBatchesFitTheTopic(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	topic := w.limited(10_000)
	failures := 0
	for ; failures < 20; failures++ {
		for i := range 200 {
			w.send(&session.Record{Topic: topic, Value: fmt.Appendf(nil, "%0500d", i), Time: time.UnixMilli(1)}, nil)
		}
		err := w.commit()
		if err == nil {
			break
		}
		if !errors.Is(err, session.ErrAborted) || errors.Is(err, session.ErrRefused) {
			t.Fatal(err)
		}
	}
	if failures == 0 || failures == 20 {
		t.Errorf("%d attempts failed", failures)
	}
	if got := w.fetched(topic, 0); len(got) != 200 {
		t.Errorf("%d records", len(got))
	}
	w.send(&session.Record{Topic: topic, Value: make([]byte, 20_000), Time: time.UnixMilli(1)}, nil)
	if err := w.commit(); !errors.Is(err, session.ErrRefused) || !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("a record of 20000 bytes: %v", err)
	}
	w.send(&session.Record{Topic: topic, Value: []byte("small"), Time: time.UnixMilli(1)}, nil)
	if err := w.commit(); err != nil {
		t.Error(err)
	}
}

// A topic that is not there fails the transaction that writes it, not the producer.
func TestUnknownTopicOfARecord(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	topic := w.topic("out", 1)
	for _, r := range []session.Record{{Topic: unique(t, "none")}, {Topic: topic, Partition: 5}} {
		w.send(&session.Record{Topic: topic, Value: []byte("lost"), Time: time.UnixMilli(1)}, nil)
		w.send(&r, nil)
		if err := w.commit(); !errors.Is(err, session.ErrAborted) || !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Errorf("%s/%d: %v", r.Topic, r.Partition, err)
		}
	}
	w.send(&session.Record{Topic: topic, Value: []byte("kept"), Time: time.UnixMilli(1)}, nil)
	if err := w.commit(); err != nil {
		t.Fatal(err)
	}
	if got := w.committed(topic, 1); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("%q", got)
	}
}

// Connections break while batches are on their way, before requests are out and
// before answers are back: what is repeated is there once.
func TestBrokenConnectionsDoubleNothing(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	topic := w.topic("out", 2)
	n := 0
	for round := range 6 {
		for i := range 400 {
			w.send(&session.Record{Topic: topic, Partition: int32(n % 2), Value: fmt.Appendf(nil, "%06d-%0400d", n, 0), Time: time.UnixMilli(1)}, nil)
			n++
			if i == 200 {
				w.line.set(true, round%2 == 0)
				time.AfterFunc(30*time.Millisecond, func() { w.line.set(false, false) })
			}
		}
		if err := w.commit(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	var got []string
	for p := range int32(2) {
		last := ""
		for _, r := range w.fetched(topic, p) {
			v := string(r.Value)
			if got = append(got, v); v <= last {
				t.Fatalf("%.6s after %.6s", v, last)
			}
			last = v
		}
	}
	if len(got) != n {
		t.Errorf("%d records, want %d", len(got), n)
	}
}

// An abort while the network is away leaves nothing behind.
func TestAbortWithoutANetwork(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	topic := w.topic("out", 1)
	w.send(&session.Record{Topic: topic, Value: []byte("kept"), Time: time.UnixMilli(1)}, nil)
	if err := w.commit(); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		w.line.set(true, round == 1)
		for i := range 10 {
			w.send(&session.Record{Topic: topic, Value: fmt.Appendf(nil, "gone-%d", i), Time: time.UnixMilli(1)}, nil)
		}
		time.AfterFunc(50*time.Millisecond, func() { w.line.set(false, false) })
		if err := w.producer.Abort(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.send(&session.Record{Topic: topic, Value: fmt.Appendf(nil, "kept-%d", round), Time: time.UnixMilli(1)}, nil)
		if err := w.commit(); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.committed(topic, 1); !slices.Equal(got, []string{"kept", "kept-0", "kept-1", "kept-2"}) {
		t.Errorf("%q", got)
	}
}

// A record costs no allocation of its own.
func TestSendAllocatesNothing(t *testing.T) {
	w := newWriter(t)
	topic := w.topic("out", 4)
	r := session.Record{Topic: topic, Partition: session.ByKey, Key: []byte("key-1"), Value: make([]byte, 100), Time: time.UnixMilli(1)}
	const records = 5000
	got := testing.AllocsPerRun(10, func() {
		for range records {
			w.send(&r, nil)
		}
		if err := w.commit(); err != nil {
			t.Fatal(err)
		}
	})
	if perRecord := got / records; perRecord > 0.2 {
		t.Errorf("%.2f allocations per record: %.0f in a transaction of %d", perRecord, got, records)
	}
}
