package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// plainWriter writes 0, 1, 2, … to its own partition with an idempotent producer that survives the kills.
type plainWriter struct {
	partition int32
	sent      int64
	acked     atomic.Int64 // records acknowledged
	lost      atomic.Int64 // records that the client gave up on; it never should
}

const plainTopic, txnTopic = "plain", "txn"

func (w *plainWriter) run(ctx context.Context, t *testing.T, addr string, acks func()) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(plainTopic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(500), kgo.ProducerLinger(0))
	if err != nil {
		t.Error(err)
		return
	}
	defer cl.Close()
	for ; ctx.Err() == nil; w.sent++ {
		r := &kgo.Record{Partition: w.partition, Value: strconv.AppendInt(nil, w.sent, 10)}
		cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				w.lost.Add(1)
				return
			}
			w.acked.Add(1)
			acks()
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		t.Error(err)
	}
}

// fate is what the client knows of a transaction's end.
type fate byte

const (
	unknown fate = iota
	committed
	aborted
)

const perTxn = 6 // records of a transaction, over three partitions

// txnWriter runs one transaction after another, each ended by chance, each on three partitions.
type txnWriter struct {
	id    int
	rng   *rand.Rand
	fates []fate
}

func (w *txnWriter) run(ctx context.Context, t *testing.T, addr string, acks func()) {
	for ctx.Err() == nil {
		cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(fmt.Sprintf("writer-%d", w.id)),
			kgo.DefaultProduceTopic(txnTopic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
		if err != nil {
			t.Error(err)
			return
		}
		for ctx.Err() == nil {
			if err := w.once(cl, acks); err != nil {
				break // the outcome stays unknown; a new client fences and aborts what is open
			}
		}
		cl.Close()
	}
}

func (w *txnWriter) once(cl *kgo.Client, acks func()) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	n := len(w.fates)
	w.fates = append(w.fates, unknown)
	records := make([]*kgo.Record, perTxn)
	for k := range records {
		records[k] = &kgo.Record{Partition: int32(k % 3), Value: fmt.Appendf(nil, "%d/%d/%d", w.id, n, k)}
	}
	ctx := context.Background()
	err := cl.ProduceSync(ctx, records...).FirstErr()
	commit := kgo.TransactionEndTry(w.rng.IntN(3) > 0 && err == nil)
	if endErr := cl.EndTransaction(ctx, commit); endErr != nil {
		return endErr
	}
	if commit {
		w.fates[n] = committed
		acks()
	} else {
		w.fates[n] = aborted
	}
	return err
}

// load runs all writers until the context ends, and waits for them.
type load struct {
	plain []*plainWriter
	txn   []*txnWriter
	acks  chan struct{} // one token for each acknowledgement, dropped when nobody reads
}

func newLoad(seed uint64) *load {
	l := &load{acks: make(chan struct{}, 1)}
	for i := range 3 {
		l.plain = append(l.plain, &plainWriter{partition: int32(i)})
	}
	for i := range 3 {
		l.txn = append(l.txn, &txnWriter{id: i, rng: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	return l
}

func (l *load) run(ctx context.Context, t *testing.T, addr string) (wait func()) {
	var wg sync.WaitGroup
	tick := func() {
		select {
		case l.acks <- struct{}{}:
		default:
		}
	}
	for _, w := range l.plain {
		wg.Go(func() { w.run(ctx, t, addr, tick) })
	}
	for _, w := range l.txn {
		wg.Go(func() { w.run(ctx, t, addr, tick) })
	}
	return wg.Wait
}
