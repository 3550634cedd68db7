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

// scan reads partitions at read_committed from the start to their ends. before and
// after are called around each poll; markers are among the records, as they are what
// ends a partition whose last transaction was aborted.
func (f *field) scan(ctx context.Context, keys []history.Key, ends map[history.Key]int64, before func(), after func([]*kgo.Record)) error {
	return f.scanFrom(ctx, keys, map[history.Key]int64{}, ends, before, after)
}

// scanFrom is scan from the offsets of at, which it moves.
func (f *field) scanFrom(ctx context.Context, keys []history.Key, at, ends map[history.Key]int64, before func(), after func([]*kgo.Record)) error {
	cl, err := kgo.NewClient(append(f.connect(), kgo.ConsumePartitions(starts(keys, at)), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(250*time.Millisecond))...)
	if err != nil {
		return fmt.Errorf("workload: reader: %w", err)
	}
	defer cl.Close()
	for {
		left, n := history.Key{}, 0
		for _, k := range keys {
			if at[k] < ends[k] {
				left, n = k, n+1
			}
		}
		if n == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("a reader has %v up to %d of %d, and is not through with %d partitions", left, at[left], ends[left], n)
		}
		wait, cancel := context.WithTimeout(ctx, time.Second)
		before()
		fetches := cl.PollRecords(wait, 1000)
		records := fetches.Records()
		for _, r := range records {
			at[history.Key{Topic: r.Topic, Partition: r.Partition}] = r.Offset + 1
		}
		after(records)
		late := wait.Err() != nil
		cancel()
		for _, e := range fetches.Errors() {
			if !late {
				return fmt.Errorf("fetch %s/%d: %w", e.Topic, e.Partition, e.Err)
			}
		}
	}
}

// drain scans as a process of its own.
func (f *field) drain(ctx context.Context, ends map[history.Key]int64) error {
	process := f.rec.process()
	f.rec.add(history.Event{Process: process, Type: history.OK, Kind: history.Assign, Keys: f.keys, FromStart: true})
	before := func() { f.rec.add(history.Event{Process: process, Type: history.Invoke, Kind: history.Poll}) }
	err := f.scan(ctx, f.keys, ends, before, func(records []*kgo.Record) {
		step := history.Step{Kind: history.StepPoll}
		for _, r := range records {
			if r.Attrs.IsControl() {
				continue
			}
			v, err := strconv.ParseInt(string(r.Value), 10, 64)
			if err != nil {
				v = -1 // which nobody sends: the checker says so
			}
			step.Reads = append(step.Reads, history.Read{Key: history.Key{Topic: r.Topic, Partition: r.Partition}, Value: v, Offset: r.Offset})
		}
		step.At = f.rec.now()
		f.rec.add(history.Event{Process: process, Type: history.OK, Kind: history.Poll, Steps: []history.Step{step}})
	})
	if err != nil {
		return fmt.Errorf("process %d: %w", process, err)
	}
	return nil
}
