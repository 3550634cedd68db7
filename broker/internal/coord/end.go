package coord

import (
	"sync/atomic"

	"github.com/millrace/millrace/txn/coordinator"
)

// End commits or aborts. The answer comes when the decision is durable and its
// markers are appended, or a second later if a partition can not take its marker.
//
// A commit is only decided when everything that its producer has written is synced, be it
// acknowledged earlier than that or not at all: a decision that outlives a record of its
// transaction would commit half of it. If that can't be, the client is told to abort.
func (t *Transactions) End(r coordinator.EndRequest, done func(coordinator.EndReply)) {
	var parts []TopicPartition
	if r.Commit {
		t.rt.ForKey(r.ID).look(func(m *txnMachine) { parts = m.MustBeDurable(r) })
	}
	t.written(r.ProducerID, parts, func(err error) {
		if err != nil {
			t.o.Logger.Warn("a transaction can't be committed, its records are not durable", "transactional_id", r.ID,
				"producer_id", r.ProducerID, "epoch", r.Epoch, "error", err)
			done(r.NotDurable())
			return
		}
		t.decide(r, done)
	})
}

func (t *Transactions) decide(r coordinator.EndRequest, done func(coordinator.EndReply)) {
	t.rt.ForKey(r.ID).Do(func(response any) {
		if f, ok := response.(Failure); ok {
			done(coordinator.EndReply{Code: f.Code, ProducerID: -1, Epoch: -1})
			return
		}
		done(response.(coordinator.EndReply))
	}, func(m *txnMachine, nowMs int64, to Token) Output {
		return txnOutput(m.EndTxn(nowMs, coordinator.Token(to), r))
	})
}

// written calls fn when all that a producer has written to the partitions is synced, or with an error. It runs at once when it is,
// which is nearly always, as the client has waited for its acknowledgements; else on a worker, for partitions call with their own
// affairs in hand.
func (t *Transactions) written(producerID int64, parts []TopicPartition, fn func(error)) {
	w := &writtenWait{}
	w.left.Store(1)
	for _, tp := range parts {
		w.left.Add(1)
		t.awaitWritten(tp, producerID, func(err error) {
			if err != nil {
				w.err.CompareAndSwap(nil, &err)
			}
			if w.left.Add(-1) == 0 {
				t.rt.work.push(func() { fn(w.failure()) })
			}
		})
	}
	if w.left.Add(-1) == 0 {
		fn(w.failure())
	}
}

type writtenWait struct {
	left atomic.Int32
	err  atomic.Pointer[error] // the first
}

func (w *writtenWait) failure() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// awaitWritten waits for one partition. One that is gone, or could not be opened, holds nothing back: its marker will wait for it.
func (t *Transactions) awaitWritten(tp TopicPartition, producerID int64, fn func(error)) {
	if tp.Topic == GroupTopic || tp.Topic == TxnTopic { // pending offsets are answered when they are durable
		fn(nil)
		return
	}
	p, err := t.o.Data(tp.Topic, tp.Partition)
	if err != nil {
		fn(nil)
		return
	}
	last := p.LastOffset(producerID)
	if last < 0 {
		fn(nil)
		return
	}
	p.AwaitDurable(last, fn)
}
