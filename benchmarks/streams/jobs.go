package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/streams/clicks"
)

// clickEvents is how many click events the jobs read at scale 1.
const clickEvents = 2_000_000

// clicksTopic has them, on every broker.
const clicksTopic = "clicks"

// loadClicks fills the topic that all jobs of a broker read.
func loadClicks(ctx context.Context, c cluster, n int64) error {
	if err := c.create(ctx, clicksTopic); err != nil {
		return err
	}
	e := clicks.NewEvents()
	return c.load(ctx, clicksTopic, n, func(r *kgo.Record) {
		v := e.Next()
		r.Key, r.Value, r.Timestamp = slices.Clone(v.Key), slices.Clone(v.Value), time.UnixMilli(v.TimeMs)
	})
}

// job is one of the four, with its ways.
type job struct {
	name, what string
	clicks     string // the job's name in package clicks
	cached     bool
	workers    int
	sides      []figures.Side
}

var streamsSides = []figures.Side{ours, oursOnKafka, kstreams}

var clickJobs = []job{
	{"map", "filter and map", clicks.Map, false, 1, streamsSides},
	{"count", "count per key, every update out", clicks.Count, false, 1, sides},
	{"merged", "count per key, updates merged per commit", clicks.Count, true, 1, streamsSides},
	{"kept", "count per key, none sent (its table alone)", clicks.Count, true, 1, []figures.Side{gokaSide}},
	{"minute", "count per key and minute, every update out", clicks.Minute, false, 1, streamsSides},
	{"workers", "count per key, every update out, two workers", clicks.Count, false, 2, []figures.Side{ours, oursOnKafka}},
}

// jobFigures are what is measured of a job that runs over what is there.
func jobFigures(name, what string) []figures.Figure {
	return []figures.Figure{
		figures.More(name, what, "rec/s"),
		figures.More(name+"-warm", what+": the second half of the records alone", "rec/s"),
		figures.More(name+"-committed", what+": until the last commit", "rec/s"),
		figures.Less(name+"-cpu", what+": CPU of the job per record", "µs"),
		figures.Less(name+"-broker", what+": CPU of the broker per record", "µs"),
		figures.Less(name+"-peak", what+": most memory of the job", "MB"),
	}
}

// put notes what came of a job over total records.
func (o outcome) put(b *bench, name string, total int64) {
	b.put(name, perSecond(total, o.first, o.last))
	if b.repeated(name, o.again); o.again == 0 {
		b.put(name+"-warm", perSecond(total-total/2, o.middle, o.last))
	}
	b.put(name+"-committed", perSecond(total, o.first, o.committed))
	b.put(name+"-cpu", micros(o.committed.job-o.first.job, total))
	b.put(name+"-broker", micros(o.committed.broker-o.first.broker, total))
	b.put(name+"-peak", o.peakMB)
}

func jobWork() []work {
	var all []work
	for _, j := range clickJobs {
		all = append(all, work{name: j.name, sides: j.sides, limit: 3 * time.Minute, figures: jobFigures(j.name, j.what),
			run: func(ctx context.Context, b *bench) error { return b.clickJob(ctx, j) }})
	}
	return all
}

// clickJob runs a job over all events and compares what it has written.
func (b *bench) clickJob(ctx context.Context, j job) error {
	n := b.sized(clickEvents)
	s := b.spec(j.clicks, clicksTopic, n)
	s.cached, s.workers = j.cached, j.workers
	if err := b.create(ctx, s.out); err != nil {
		return err
	}
	o, err := b.toTheEnd(ctx, s)
	if err != nil {
		return err
	}
	results, number := s.out, clicks.Long
	if b.side == gokaSide {
		number = clicks.Decimal
		if j.cached {
			results = s.id + "-table"
		}
	}
	check, err := clicks.NewCheck(j.clicks, n, !j.cached, number)
	if err != nil {
		return err
	}
	err = b.cluster.results(ctx, results, func(r *kgo.Record) error { return check.Take(r.Key, r.Value) })
	if err = errors.Join(err, check.Done()); err != nil {
		return err // a job with a wrong result has no figures
	}
	o.put(b, j.name, n)
	return nil
}
