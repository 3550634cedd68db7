package crash

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// rivals are connections that all believe to be the same transactional producer, of either version, at the same time.
type rivals struct {
	pid   atomic.Int64
	epoch atomic.Int32
	side  atomic.Int32 // how often the side topic was made
}

func (r *rivals) learn(pid int64, epoch int16) {
	r.pid.Store(pid)
	r.epoch.Store(int32(epoch))
}

// rival sends random requests with the newest epoch it knows, or one beside it, and returns what should not have been
// answered.
func (r *rivals) rival(w *wire, rng *rand.Rand, requests int) error {
	seqs := map[string]int32{}
	for range requests {
		p := &producer{w: w, id: "x", version: 1 + rng.IntN(2), pid: r.pid.Load(), epoch: int16(r.epoch.Load())}
		if rng.IntN(8) == 0 {
			p.epoch += int16(rng.IntN(3)) - 1
		}
		topic, partition := "t", rng.Int32N(3)
		if rng.IntN(6) == 0 {
			topic, partition = "side", 0
		}
		var c int16
		what := ""
		switch rng.IntN(12) {
		case 0:
			what = "InitProducerId"
			req := initRequest("x", -1, -1)
			req.TransactionTimeoutMillis = int32(20 + rng.IntN(200))
			if rng.IntN(2) == 0 {
				req.ProducerID, req.ProducerEpoch = p.pid, p.epoch
			}
			a := p.ask(req).(*kmsg.InitProducerIDResponse)
			if c = a.ErrorCode; c == 0 {
				r.learn(a.ProducerID, a.ProducerEpoch)
			}
		case 1, 2:
			what = "AddPartitionsToTxn"
			c = p.add(topic, partition)
		case 3, 4, 5, 6:
			what = "Produce"
			at := fmt.Sprintf("%s/%d/%d/%d", topic, partition, p.pid, p.epoch)
			raw := batch(p.pid, p.epoch, seqs[at], true, "v")
			version := []int16{11, 12}[p.version-1]
			if c = w.produce(version, "x", topic, partition, raw).ErrorCode; c == 0 {
				seqs[at]++
			}
		case 7:
			what = "TxnOffsetCommit"
			w.hopeless = func() bool { return true }
			c = p.commitOffset("t", 0, int64(rng.IntN(100)))
		case 8:
			what = "topic"
			if n := r.side.Add(1); n%2 == 0 {
				w.deleteTopic("side")
			} else {
				w.createTopic("side", 1)
			}
		default:
			what = "EndTxn"
			req := kmsg.NewPtrEndTxnRequest()
			req.Version = []int16{4, 5}[p.version-1]
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = "x", p.pid, p.epoch, rng.IntN(2) == 0
			a := p.ask(req).(*kmsg.EndTxnResponse)
			if c = a.ErrorCode; c == 0 && p.version == 2 {
				r.learn(a.ProducerID, a.ProducerEpoch)
			}
		}
		if c == -1 {
			return fmt.Errorf("%s with epoch %d: UNKNOWN_SERVER_ERROR", what, p.epoch)
		}
	}
	return nil
}

// TestRivalsLeaveNothingOpen lets several connections be the same producer at once, with timeouts as short as a few
// requests and a topic that comes and goes in the middle of transactions. Each request is answered, and at rest nothing
// is open: the last stable offset is the end, every transactional batch has its marker behind it, offsets are stable.
func TestRivalsLeaveNothingOpen(t *testing.T) {
	rounds, requests := 2, 150
	if soak() {
		rounds, requests = 60, 600
	}
	seed := newSeed(t)
	for round := range uint64(rounds) {
		b := brokertest.Start(t, small, quiet)
		w := dial(t, b)
		w.must("create", func() int16 { return w.createTopic("t", 3) })
		r := &rivals{}
		first := newProducer(w, "x", 2)
		r.learn(first.pid, first.epoch)
		var all sync.WaitGroup
		for n := range uint64(5) {
			c := dial(t, b)
			all.Go(func() {
				if err := r.rival(c, rand.New(rand.NewPCG(seed, round*100+n)), requests); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		all.Wait()
		w.must("InitProducerId", first.init)
		k := &check{story: &story{t: t}, w: w}
		for p := range int32(3) {
			if _, err := k.stable("t", p); err != nil {
				t.Errorf("round %d: t-%d: %v", round, p, err)
			}
			if err := closed(w, "t", p); err != nil {
				t.Errorf("round %d: t-%d: %v", round, p, err)
			}
		}
		if _, err := w.committedOffset("t", 0); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		w.close()
		stop(t, b)
	}
}

// closed reads the raw log and looks for transactional batches without a marker behind them.
func closed(w *wire, topic string, partition int32) error {
	end, _ := w.offset(topic, partition, -1, false)
	open := map[int64]int64{}
	for at := int64(0); at < end; {
		row := w.fetch(topic, partition, at, false)
		batches := decode(row.RecordBatches)
		if row.ErrorCode != 0 || len(batches) == 0 {
			return fmt.Errorf("fetch at %d of %d: %s", at, end, code(row.ErrorCode))
		}
		for _, b := range batches {
			if b.control() {
				delete(open, b.ProducerID)
			} else {
				open[b.ProducerID] = b.FirstOffset
			}
		}
		at = batches[len(batches)-1].last() + 1
	}
	if len(open) > 0 {
		return fmt.Errorf("no marker for producers and offsets %v", open)
	}
	return nil
}
