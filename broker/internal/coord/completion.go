package coord

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/txn/coordinator"
	"github.com/millrace/millrace/txn/producer"
)

const (
	// answerAfter is how long the answer to an EndTxn waits for the markers. The
	// decision is durable by then, so it may leave.
	answerAfter = time.Second
	// Markers that a partition does not take are tried again, after a while that
	// grows.
	markerRetryMin = 10 * time.Millisecond
	markerRetryMax = time.Second
)

// carryOut starts to carry out a decision. It is the effect of the machine.
func (t *Transactions) carryOut(s *txnShard, d coordinator.Decision) {
	c := &completion{
		t: t, shard: s, d: d, todo: make([]int, len(d.Partitions)), finished: make([]bool, len(d.Partitions)),
		key: decisionKey{id: d.ID, producerID: d.ProducerID, epoch: d.Epoch, commit: d.Commit},
	}
	for i := range c.todo {
		c.todo[i] = i
	}
	t.mu.Lock()
	_, twice := t.running[c.key]
	if !twice {
		t.running[c.key] = c
	}
	t.mu.Unlock()
	if !twice {
		c.attempt()
	}
}

func (c *completion) marker() producer.Marker {
	m := producer.Marker{ProducerID: c.d.ProducerID, Epoch: c.d.Epoch, Commit: c.d.Commit, TxnVersion: txnVersionEqual}
	if c.d.Bumped {
		m.TxnVersion = txnVersionStrict
	}
	m.CoordinatorEpoch = c.shard.leaderEpoch()
	return m
}

// attempt appends the markers that are to be appended.
func (c *completion) attempt() {
	c.mu.Lock()
	todo := c.todo
	c.todo = nil
	c.open = 1 + len(todo)
	c.mu.Unlock()
	m := c.marker()
	for _, i := range todo {
		c.append(i, m)
	}
	c.mu.Lock()
	first := c.attempts == 0
	c.attempts++
	all := len(c.todo) == 0
	c.mu.Unlock()
	switch {
	case all:
		c.answer()
	case first:
		c.t.o.Clock.AfterFunc(answerAfter, c.answer)
	}
	c.settle(itself, true)
}

// append appends the marker of the partition in place i. Whatever comes of it ends in settle.
func (c *completion) append(i int, m producer.Marker) {
	tp := c.d.Partitions[i]
	durable := func(err error) { c.settle(i, err == nil) }
	err := c.t.appendMarker(tp, m, durable)
	switch {
	case err == nil:
	case errors.Is(err, ErrNoPartition):
		// The topic was deleted, and the data with it.
		c.settle(i, true)
	case errors.Is(err, producer.ErrMarkerRepeated):
		// It stands in the log, perhaps not yet durable.
		c.t.awaitAll(tp, durable)
	case markerCode(err) == codeInvalidProducerEpoch:
		// The partition has seen a newer epoch, so whatever it had open of this
		// transaction was ended by that one's owner or by an operator.
		c.warn("partition refuses the marker of an older epoch", tp, err)
		c.t.awaitAll(tp, durable)
	case markerCode(err) == codeTransactionCoordFenced:
		c.warn("partition has seen a marker of a later coordinator", tp, err)
		c.settle(i, false)
	default:
		c.warn("partition does not take the marker yet", tp, err)
		c.settle(i, false)
	}
}

func (c *completion) warn(what string, tp TopicPartition, err error) {
	c.t.o.Logger.Warn(what, "transactional_id", c.d.ID, "producer_id", c.d.ProducerID, "epoch", c.d.Epoch,
		"partition", fmt.Sprintf("%s-%d", tp.Topic, tp.Partition), "error", err)
}

// itself is attempt in place of a partition.
const itself = -1

// settle says that one thing under way has ended: attempt itself, or the marker of the partition in place i. If that is not
// finished it needs another attempt. The last one leads on.
func (c *completion) settle(i int, finished bool) {
	c.mu.Lock()
	switch {
	case i == itself:
	case finished:
		c.finished[i] = true
	default:
		c.todo = append(c.todo, i)
	}
	c.open--
	last, retry := c.open == 0, len(c.todo) > 0
	wait := min(markerRetryMin<<min(max(c.attempts-1, 0), 10), markerRetryMax)
	c.mu.Unlock()
	switch {
	case !last:
	case retry:
		c.t.o.Clock.AfterFunc(wait, func() { c.t.rt.work.push(c.attempt) })
	default:
		c.t.rt.work.push(c.complete)
	}
}

// answer sends the reply to the EndTxn, once.
func (c *completion) answer() {
	c.mu.Lock()
	first := !c.answered
	c.answered = true
	c.mu.Unlock()
	if first && c.d.Reply.To != 0 {
		c.shard.Reply(Token(c.d.Reply.To), c.d.Reply.Response)
	}
}

// complete tells the machine that all markers are durable. The decision stops to be
// under way in the very step that writes Complete…, before anything of the next
// transaction can happen. If that step did not happen it is tried again. If the shard
// was lost in it, nobody knows: the machine that is loaded next starts the decision
// anew, unless Complete… is in the log.
func (c *completion) complete() {
	c.shard.Do(func(response any) {
		f, failed := response.(Failure)
		switch {
		case !failed:
		case f.Lost:
			c.ended()
		default:
			c.t.o.Clock.AfterFunc(markerRetryMax, func() { c.t.rt.work.push(c.complete) })
		}
	}, func(m *txnMachine, nowMs int64, to Token) Output {
		out := txnOutput(m.Completed(nowMs, c.d))
		out.Replies = append(out.Replies, Reply{To: to})
		out.Applied = c.ended
		return out
	})
}

// unfinished are the partitions that the decision has not reached.
func (c *completion) unfinished() []TopicPartition {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []TopicPartition
	for i, done := range c.finished {
		if !done {
			left = append(left, c.d.Partitions[i])
		}
	}
	return left
}

// ended takes the decision off those under way.
func (c *completion) ended() {
	c.t.mu.Lock()
	delete(c.t.running, c.key)
	c.t.mu.Unlock()
}
