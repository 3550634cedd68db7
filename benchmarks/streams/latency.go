package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/streams/clicks"
)

// The load of the latency rows.
const (
	latencyRate = 10_000 // records a second, in steps of a millisecond
	latencySize = 110    // bytes of a value
	latencyWarm = 3 * time.Second
	latencySpan = 3 * time.Second
)

func latencyWork() []work {
	var all []work
	for _, ms := range []int64{100, 10} {
		name, what := fmt.Sprintf("latency-%d", ms), fmt.Sprintf("%d rec/s through a job that commits every %d ms", latencyRate, ms)
		all = append(all, work{name: "latency", sides: streamsSides, limit: 90 * time.Second, figures: []figures.Figure{
			figures.Less(name+"-p50", what+": p50", "ms"),
			figures.Less(name+"-p99", what+": p99", "ms"),
			figures.Less(name+"-cpu", what+": CPU of the job", "ms/s"),
		}, run: func(ctx context.Context, b *bench) error {
			return b.latency(ctx, name, time.Duration(ms)*time.Millisecond)
		}})
	}
	return all
}

// latency sends records at a steady rate through a job and notes how long each takes from the moment it was due to the
// moment when a committed reader has it.
func (b *bench) latency(ctx context.Context, name string, commit time.Duration) (err error) {
	in := b.id + "-in"
	s := b.spec(clicks.Relay, in, 1<<40)
	s.commit = commit
	if err := errors.Join(b.create(ctx, in, s.out), os.MkdirAll(s.dir, 0o755)); err != nil {
		return err
	}
	p, err := b.startJob(s, b.broker)
	if err != nil {
		return err
	}
	ended := false
	defer func() {
		if !ended {
			err = errors.Join(err, p.kill())
		}
	}()
	// The load begins when the job is there: what piles up while a process starts is no latency of it.
	err = b.load(ctx, in, partitions, func(r *kgo.Record) { r.Value = []byte("0") })
	if err != nil {
		return err
	}
	if _, err := p.await(ctx, "first"); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	sent := make(chan error, 1)
	go func() { sent <- b.steady(ctx, in) }()
	from := time.Now().Add(latencyWarm)
	before := p.now()
	took, err := b.arrivals(ctx, s.out, from, from.Add(latencySpan))
	if err != nil {
		return err
	}
	after := p.now()
	stop(errEnough)
	if err := <-sent; err != nil && !errors.Is(err, errEnough) {
		return err
	}
	ended = true
	if err := p.stop(); err != nil {
		return err
	}
	slices.Sort(took)
	b.put(name+"-p50", milliseconds(took[len(took)/2]))
	b.put(name+"-p99", milliseconds(took[len(took)*99/100]))
	b.put(name+"-cpu", milliseconds(after.job-before.job)/after.at.Sub(before.at).Seconds())
	return nil
}

var errEnough = errors.New("enough was sent")

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// steady sends records with the time when each is due until ctx ends. The pace does not wait for acknowledgements.
func (b *bench) steady(ctx context.Context, topic string) error {
	cl, err := b.client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.MaxBufferedRecords(1<<20))
	if err != nil {
		return err
	}
	defer cl.Close()
	first := kgo.AbortingFirstErrPromise(cl)
	const step = time.Millisecond
	pad := strings.Repeat(" ", latencySize)
	for due := time.Now().Truncate(step); ctx.Err() == nil; due = due.Add(step) {
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		for range latencyRate / 1000 {
			v := strconv.AppendInt(make([]byte, 0, latencySize), due.UnixNano(), 10)
			cl.Produce(ctx, &kgo.Record{Value: append(v, pad[:latencySize-len(v)]...)}, first.Promise())
		}
	}
	return context.Cause(ctx)
}

// arrivals reads a topic as a committed reader and returns how long the records took that were due in a span of time.
func (b *bench) arrivals(ctx context.Context, topic string, from, to time.Time) ([]time.Duration, error) {
	cl, err := b.client(kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	from, to = from.Truncate(time.Millisecond), to.Truncate(time.Millisecond)
	want := int(latencyRate * latencySpan.Seconds())
	took := make([]time.Duration, 0, want)
	for len(took) < want { // records of several partitions may come in any order
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return nil, fmt.Errorf("of %d records %d have arrived: %w", want, len(took), err)
		}
		now := time.Now()
		var bad error
		fetches.EachRecord(func(r *kgo.Record) {
			ns, err := strconv.ParseInt(strings.TrimSpace(string(r.Value)), 10, 64)
			if err != nil {
				bad = err
			}
			if due := time.Unix(0, ns); !due.Before(from) && due.Before(to) {
				took = append(took, now.Sub(due))
			}
		})
		if bad != nil {
			return nil, bad
		}
	}
	return took, nil
}
