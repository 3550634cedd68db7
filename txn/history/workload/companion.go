package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/history"
)

// Outcome is what a companion of the workload found. A companion does one thing whose
// end can be reckoned in advance, so that its verdict needs no history.
type Outcome struct {
	Summary  string   // in a line
	Findings []string // what is wrong, the first maxFindings of it
	Found    int      // how much is wrong
}

const maxFindings = 20

func (o *Outcome) find(format string, args ...any) {
	if o.Found++; o.Found <= maxFindings {
		o.Findings = append(o.Findings, fmt.Sprintf(format, args...))
	}
}

// companion works until stop is closed, and then once more, to leave nothing open.
type companion interface {
	work(f *field, worker int, stop <-chan struct{}) error
	record(r *kgo.Record) // of the reading at the end, in the order of each partition
	judge(o *Outcome)
}

// run lets a companion's workers work, then reads everything and judges.
func run(ctx context.Context, o Options, c companion) (Outcome, error) {
	var out Outcome
	if err := o.Validate(); err != nil {
		return out, err
	}
	o = o.withDefaults()
	f, err := newField(ctx, o)
	if err != nil {
		return out, err
	}
	stopProgress := f.report()
	defer stopProgress()
	f.rec.setPhase(Working)
	stop := make(chan struct{})
	failures := make([]error, o.Clients)
	var working sync.WaitGroup
	for i := range o.Clients {
		working.Go(func() { failures[i] = c.work(f, i, stop) })
	}
	over := time.NewTimer(o.Duration)
	select {
	case <-over.C:
	case <-ctx.Done():
		over.Stop()
	}
	close(stop)
	f.wire.heal()
	f.rec.setPhase(Settling)
	working.Wait()
	f.rec.setPhase(Draining)
	reading, cancel := context.WithTimeout(context.Background(), o.Patience)
	defer cancel()
	watcher := &observer{field: f, process: f.rec.process()}
	ends, err := watcher.quiet(reading)
	if err == nil {
		err = f.scan(reading, f.keys, ends, func() {}, func(records []*kgo.Record) {
			for _, r := range records {
				if !r.Attrs.IsControl() {
					c.record(r)
				}
			}
		})
	}
	if err = errors.Join(append(failures, err)...); err != nil {
		out.find("%v", err)
	}
	c.judge(&out)
	cleanup, cancelCleanup := context.WithTimeout(context.Background(), patience)
	defer cancelCleanup()
	return out, f.close(cleanup)
}

// done counts an operation for Progress.
func (f *field) done(outcome history.Type) {
	f.rec.mu.Lock()
	defer f.rec.mu.Unlock()
	switch outcome {
	case history.OK:
		f.rec.count.Done++
	case history.Info:
		f.rec.count.Unknown++
		f.rec.count.Failed++
	default:
		f.rec.count.Failed++
	}
}

// over says whether stop is closed.
func over(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}
