package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/history"
)

// operation is one that runs.
type operation struct {
	event    history.Event
	first    map[history.Key]int64 // per partition the first offset that it polled
	next     map[history.Key]int64 // and the one behind the last
	restless bool                  // the client can not be used afterwards
}

// begin records the start of an operation with these steps.
func (c *client) begin(kind history.Kind, steps []history.Step) *operation {
	c.rebalanced() // what moved before is of no interest
	c.rec.add(history.Event{Process: c.process, Type: history.Invoke, Kind: kind, Steps: steps})
	return &operation{
		event: history.Event{Process: c.process, Kind: kind},
		first: map[history.Key]int64{}, next: map[history.Key]int64{},
	}
}

// end records the end. What did not succeed is read again; a client that can not go on
// becomes another.
func (c *client) end(op *operation, outcome history.Type, why error) {
	op.event.Type = outcome
	if c.group != "" {
		op.event.Rebalanced = c.rebalanced()
	}
	if why != nil {
		op.event.Note = why.Error()
	}
	c.rec.add(op.event)
	switch {
	case outcome == history.Info || op.restless:
		c.retire()
		c.renew()
	case c.group != "":
	case outcome == history.OK:
		for k, o := range op.next {
			c.next[k] = o
		}
	case len(op.first) > 0:
		c.cl.SetOffsets(offsets(op.first))
	}
}

// poll asks once for records, and notes what came.
func (c *client) poll(ctx context.Context, op *operation, most int) error {
	wait, cancel := context.WithTimeout(ctx, time.Duration(2+c.rng.IntN(30))*time.Millisecond)
	defer cancel()
	fetches := c.cl.PollRecords(wait, most)
	step := history.Step{Kind: history.StepPoll}
	var err error
	for r := range fetches.RecordsAll() {
		k := history.Key{Topic: r.Topic, Partition: r.Partition}
		v, bad := strconv.ParseInt(string(r.Value), 10, 64)
		if bad != nil {
			err = fmt.Errorf("%v offset %d holds %q, which nobody sends", k, r.Offset, r.Value)
			v = -1
		}
		step.Reads = append(step.Reads, history.Read{Key: k, Value: v, Offset: r.Offset})
		if _, known := op.first[k]; !known {
			op.first[k] = r.Offset
		}
		op.next[k] = r.Offset + 1
	}
	step.At = c.rec.now()
	op.event.Steps = append(op.event.Steps, step)
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) {
			err = fmt.Errorf("fetch %s/%d: %w", e.Topic, e.Partition, e.Err)
		}
	}
	return err
}

// send writes the records of some steps, one after the other without waiting, and
// returns when all are answered.
func (c *client) send(ctx context.Context, op *operation, steps []history.Step) error {
	from := len(op.event.Steps)
	op.event.Steps = append(op.event.Steps, steps...)
	mine := op.event.Steps[from:]
	var wg sync.WaitGroup
	errs := make([]error, len(mine))
	for i := range mine {
		s := &mine[i]
		s.Offset = history.Unknown
		wg.Add(1)
		r := &kgo.Record{Topic: s.Key.Topic, Partition: s.Key.Partition, Value: strconv.AppendInt(nil, s.Value, 10)}
		c.cl.Produce(ctx, r, func(r *kgo.Record, err error) {
			defer wg.Done()
			s.At, errs[i] = c.rec.now(), err
			if err == nil {
				s.Offset = r.Offset
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// plainSend writes one record outside of a transaction. An error leaves its fate open.
func (c *client) plainSend(s history.Step) {
	op := c.begin(history.Send, []history.Step{s})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.send(ctx, op, []history.Step{s}); err != nil {
		c.end(op, history.Info, err)
		return
	}
	c.end(op, history.OK, nil)
}

// plainPoll reads outside of a transaction. A member of a group commits right away what
// it read; an error leaves open whether it did.
func (c *client) plainPoll() {
	op := c.begin(history.Poll, nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c.group != "" {
		defer func() {
			if c.cl != nil {
				c.cl.AllowRebalance()
			}
		}()
	}
	if err := c.poll(ctx, op, 1+c.rng.IntN(maxPoll)); err != nil {
		op.restless = true
		c.end(op, history.Fail, err)
		return
	}
	if c.group != "" && len(op.next) > 0 {
		op.event.Steps = append(op.event.Steps, c.offsetStep(op))
		if err := c.cl.CommitUncommittedOffsets(ctx); err != nil {
			c.end(op, history.Info, fmt.Errorf("commit: %w", err))
			return
		}
	}
	c.end(op, history.OK, nil)
}

// maxPoll is how many records a poll takes at most.
const maxPoll = 40

func (c *client) offsetStep(op *operation) history.Step {
	s := history.Step{Kind: history.StepOffsets, Group: c.group}
	for _, k := range c.field.keys {
		if o, polled := op.next[k]; polled {
			s.Next = append(s.Next, history.Position{Key: k, Offset: o})
		}
	}
	return s
}

// transaction runs the steps in one. abortAt is the step before which it is given up
// on purpose, -1 is never. It says whether it committed.
func (c *client) transaction(steps []history.Step, abortAt int) bool {
	op := c.begin(history.Txn, steps)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.cl.BeginTransaction(); err != nil {
		op.restless = true
		c.end(op, history.Fail, fmt.Errorf("begin: %w", err))
		return false
	}
	err := c.runSteps(ctx, op, steps, abortAt)
	if err == nil && c.group != "" && len(op.next) > 0 {
		op.event.Steps = append(op.event.Steps, c.offsetStep(op))
	}
	if err != nil || abortAt >= 0 {
		c.abort(op, err)
		return false
	}
	op.event.Steps = append(op.event.Steps, history.Step{Kind: history.StepCommit, At: c.rec.now()})
	if c.rng.IntN(oneUsurper) == 0 {
		c.usurp(ctx)
	}
	outcome, err := c.commit(ctx, len(op.next) > 0)
	c.end(op, outcome, err)
	return outcome == history.OK
}

func (c *client) runSteps(ctx context.Context, op *operation, steps []history.Step, abortAt int) error {
	together := c.rng.IntN(2) == 0 // sends that follow each other leave at once
	for i := 0; i < len(steps); i++ {
		if i == abortAt {
			return nil
		}
		if steps[i].Kind == history.StepPoll {
			if err := c.poll(ctx, op, 1+c.rng.IntN(maxPoll)); err != nil {
				op.restless = true
				return err
			}
			continue
		}
		to := i + 1
		for together && to < len(steps) && to != abortAt && steps[to].Kind == history.StepSend {
			to++
		}
		if err := c.send(ctx, op, steps[i:to]); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		i = to - 1
	}
	return nil
}

// usurp lets another client take the transactional id over, as if this one had been
// paused for long. What it commits afterwards is a zombie's: refused, or, if it is told
// OK, missing from what readers see.
func (c *client) usurp(ctx context.Context) {
	cl, err := kgo.NewClient(append(c.connect(), kgo.TransactionalID(c.transactionalID()))...)
	if err != nil {
		return // the options of this very client
	}
	defer cl.Close()
	// Whether it got through makes no difference to what must hold.
	_, _, _ = cl.ProducerID(ctx)
}

// commit tries to. Fail is only what the library says it did not even ask for. Where
// there is no offset to commit the group has no say in it, and the session would only
// sleep, as it has not heard of the group's version then.
func (c *client) commit(ctx context.Context, consumed bool) (history.Type, error) {
	if c.session != nil && consumed {
		committed, err := c.session.End(ctx, kgo.TryCommit)
		switch {
		case err != nil:
			return history.Info, fmt.Errorf("commit: %w", err)
		case !committed:
			return history.Fail, errRebalanced
		}
		return history.OK, nil
	}
	err := c.cl.EndTransaction(ctx, kgo.TryCommit)
	if errors.Is(err, kerr.OperationNotAttempted) {
		if err := c.cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
			return history.Info, fmt.Errorf("abort of what could not be committed: %w", err)
		}
		return history.Fail, err
	}
	if err != nil {
		return history.Info, fmt.Errorf("commit: %w", err)
	}
	return history.OK, nil
}

var errRebalanced = errors.New("the group rebalanced, the transaction was aborted")

// abort ends a transaction that never tried to commit. So it has certainly failed, also
// when the abort does; then another process takes the transactional id over.
func (c *client) abort(op *operation, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	op.event.Steps = append(op.event.Steps, history.Step{Kind: history.StepAbort, At: c.rec.now()})
	var err error
	if c.session != nil {
		_, err = c.session.End(ctx, kgo.TryAbort)
	} else if err = c.cl.AbortBufferedRecords(ctx); err == nil {
		err = c.cl.EndTransaction(ctx, kgo.TryAbort)
	}
	if err != nil {
		op.restless = true
		why = errors.Join(why, fmt.Errorf("abort: %w", err))
	}
	c.end(op, history.Fail, why)
}
