package workload

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/history"
)

// quiet waits until no partition is held by a transaction, and returns where they end.
// When time runs out the readers go as far as they are let, and the checker finds out
// who holds what.
func (o *observer) quiet(ctx context.Context) (map[history.Key]int64, error) {
	var last error
	for ctx.Err() == nil {
		marks, err := o.marks(ctx)
		last = err
		ends, held := map[history.Key]int64{}, false
		for _, m := range marks {
			ends[m.Key] = m.Stable
			held = held || m.Stable < m.High
		}
		if err == nil && !held {
			return ends, nil
		}
		if err == nil && time.Until(deadline(ctx)) < heldFor {
			return ends, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("watermarks: %w", last)
}

// heldFor is how much time is kept for the readers when a transaction does not end.
const heldFor = 20 * time.Second

func deadline(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d
}

// drain reads all partitions from the start to their ends, as a process of its own.
func (f *field) drain(ctx context.Context, ends map[history.Key]int64) error {
	c := &client{field: f, process: f.rec.process()}
	at := map[history.Key]int64{}
	c.keys, c.next = f.keys, at
	e := history.Event{Process: c.process, Type: history.OK, Kind: history.Assign, Keys: f.keys, FromStart: true}
	cl, err := kgo.NewClient(append(f.connect(), kgo.ConsumePartitions(c.starts()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(250*time.Millisecond))...)
	if err != nil {
		return fmt.Errorf("workload: reader: %w", err)
	}
	defer cl.Close()
	f.rec.add(e)
	for {
		left, n := history.Key{}, 0
		for _, k := range f.keys {
			if at[k] < ends[k] {
				left, n = k, n+1
			}
		}
		if n == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("process %d has read %v up to %d of %d, and is not through with %d partitions", c.process, left, at[left], ends[left], n)
		}
		if err := c.drainOnce(ctx, cl, at); err != nil {
			return err
		}
	}
}

// drainOnce is a poll that moves on over markers too, which end a partition when the
// last transaction was aborted.
func (c *client) drainOnce(ctx context.Context, cl *kgo.Client, at map[history.Key]int64) error {
	c.rec.add(history.Event{Process: c.process, Type: history.Invoke, Kind: history.Poll})
	wait, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	fetches := cl.PollRecords(wait, 1000)
	step := history.Step{Kind: history.StepPoll}
	for r := range fetches.RecordsAll() {
		k := history.Key{Topic: r.Topic, Partition: r.Partition}
		at[k] = r.Offset + 1
		if r.Attrs.IsControl() {
			continue
		}
		v, err := strconv.ParseInt(string(r.Value), 10, 64)
		if err != nil {
			v = -1 // which nobody sends: the checker says so
		}
		step.Reads = append(step.Reads, history.Read{Key: k, Value: v, Offset: r.Offset})
	}
	step.At = c.rec.now()
	c.rec.add(history.Event{Process: c.process, Type: history.OK, Kind: history.Poll, Steps: []history.Step{step}})
	for _, e := range fetches.Errors() {
		if wait.Err() == nil {
			return fmt.Errorf("process %d: fetch %s/%d: %w", c.process, e.Topic, e.Partition, e.Err)
		}
	}
	return nil
}
