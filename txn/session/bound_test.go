package session_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/session"
)

// Whatever the number of partitions and the size of records, a reader holds what it is
// told to and a batch more; and an owner who insists on a feed that is empty while the
// others have filled the memory gets it.
func TestReaderHoldsWhatItIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const partitions, each, limit = 60, 24, 200 << 10
	topic := w.topic("in", partitions)
	var rs []*kgo.Record
	rnd := rand.New(rand.NewPCG(1, 2)) // bytes that no codec makes small
	for i := range each * partitions {
		size := 1 << 10
		if i%97 == 0 {
			size = 300 << 10 // larger than all that may be held
		}
		rs = append(rs, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: noise(rnd, size)})
	}
	for len(rs) > 0 { // in batches of one
		n := min(len(rs), partitions)
		if err := w.admin.ProduceSync(w.ctx, rs[:n]...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		rs = rs[n:]
	}
	c, err := session.Connect(w.ctx, session.ClusterOptions{Seeds: w.seeds})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := c.NewReader(session.ReaderOptions{TotalBytes: limit, BufferBytes: 100 << 10, MaxWait: 10 * time.Millisecond})
	defer r.Close()
	var feeds []*session.Feed
	for p := range int32(partitions) {
		feeds = append(feeds, r.Add(session.TopicPartition{Topic: topic, Partition: p}, 0))
	}
	// All memory is filled before the first record is read.
	for now := 0; now < limit/2; now, _ = r.Buffered() {
		select {
		case <-r.Arrived():
		case <-w.ctx.Done():
			t.Fatal("nothing arrives")
		}
	}
	// One record of each in turn, whichever is there.
	for n := range each {
		for p, f := range feeds {
			for {
				if _, ok := f.Head(); ok {
					f.Pop()
					f.Head() // a chunk that is read to its end is let go of
					break
				}
				if err := f.Err(); err != nil {
					t.Fatal(err)
				}
				r.Want(f)
				select {
				case <-r.Arrived():
				case <-w.ctx.Done():
					now, peak := r.Buffered()
					t.Fatalf("partition %d, record %d does not come; %d bytes are held, at most %d were", p, n, now, peak)
				}
			}
		}
	}
	_, peak := r.Buffered()
	if most := limit + 2*(301<<10); peak > most {
		t.Errorf("%d bytes were held, %d are allowed and two batches", peak, limit)
	}
	for _, f := range feeds {
		f.Head()
	}
	if now, _ := r.Buffered(); now != 0 {
		t.Errorf("%d bytes are held in the end", now)
	}
	t.Logf("at most %d bytes", peak)
}

func noise(rnd *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, rnd.Uint64())
	}
	return b[:n]
}
