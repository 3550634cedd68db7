package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/rig"
)

// Who takes part: streams and the broker below them.
const (
	ours        figures.Side = "Millrace"
	oursOnKafka figures.Side = "Millrace on Kafka"
	kstreams    figures.Side = "Kafka Streams on Kafka"
	gokaSide    figures.Side = "goka on Kafka"
)

// sides in the order of the page.
var sides = []figures.Side{ours, oursOnKafka, kstreams, gokaSide}

func engineOf(s figures.Side) engine {
	switch s {
	case kstreams:
		return kstreamsEngine
	case gokaSide:
		return gokaEngine
	}
	return millraceEngine
}

// bench is what one piece of work of one side gets: its broker, its folder, and where figures go.
type bench struct {
	cluster
	flags
	side   figures.Side
	broker *rig.Process
	dir    string // of this piece of work alone
	id     string // for groups and topics
	sheet  *figures.Sheet
}

func (b *bench) put(name string, v float64) { b.sheet.Values[name] = v }

// repeated notes beside a figure how many records were processed a second time.
func (b *bench) repeated(name string, again int64) {
	if again > 0 {
		b.sheet.Notes[name] = fmt.Sprintf("in one round %d records were processed again, after an aborted transaction", again)
	}
}

// sized is a number of records at the scale of the run.
func (b *bench) sized(n int64) int64 { return max(1000, int64(float64(n)*b.scale)) }

// spec is a job of this side with nothing special.
func (b *bench) spec(job, in string, total int64) spec {
	return spec{engine: engineOf(b.side), job: job, id: b.id, brokers: b.addr, in: in, out: b.id + "-out", dir: filepath.Join(b.dir, "state"),
		total: total, workers: 1, commit: 100 * time.Millisecond, profile: b.flags.profile}
}

// outcome is what one job did.
type outcome struct {
	first, middle, last, committed mark
	peakMB                         float64
	again                          int64 // records that were processed a second time
}

// perSecond is the rate between two marks.
func perSecond(records int64, from, to mark) float64 {
	return float64(records) / max(to.at.Sub(from.at).Seconds(), 1e-9)
}

// micros is processor time per record.
func micros(used time.Duration, records int64) float64 {
	return float64(used.Nanoseconds()) / 1000 / float64(records)
}

// toTheEnd runs a job over input that is there, until it has committed all of it. Where records were processed again, after
// a transaction that was aborted, its last record is done with the last commit.
func (b *bench) toTheEnd(ctx context.Context, s spec) (o outcome, err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return o, err
	}
	p, err := b.startJob(s, b.broker)
	if err != nil {
		return o, err
	}
	ended := false
	defer func() {
		if !ended {
			err = errors.Join(err, p.kill())
		}
	}()
	for _, m := range []struct {
		what string
		to   *mark
	}{{"first", &o.first}, {"middle", &o.middle}, {"last", &o.last}} {
		if *m.to, err = p.await(ctx, m.what); err != nil {
			return o, err
		}
	}
	if err := b.cluster.committed(ctx, s.id, s.in); err != nil {
		return o, fmt.Errorf("%w: %s", err, p.log.String())
	}
	o.committed = p.now()
	o.peakMB = p.PeakMB()
	ended = true
	if err := p.stop(); err != nil {
		return o, err
	}
	if o.again, err = p.again(s.total); o.again > 0 {
		o.middle, o.last = o.first, o.committed // counted records say nothing about when half of them or all were done
	}
	return o, err
}
