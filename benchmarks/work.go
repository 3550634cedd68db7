package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
)

// workload is a piece of work that gives figures.
type workload struct {
	name    string // what -only chooses it by; several may share one
	figures []figures.Figure
	extra   time.Duration // what it may take beside the timed part
	grace   time.Duration // after its end; 10 s where it is 0
	process bool          // needs a broker that this program started
	run     func(context.Context, *env) error
}

// limit is how long the workload may take before it is given up.
func (w workload) limit(seconds time.Duration) time.Duration {
	return 4*seconds + 20*time.Second + w.extra
}

func (w workload) chosen(only string) bool {
	names := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	return len(names) == 0 || slices.Contains(names, w.name)
}

var errHangs = errors.New("does not come back")

// do runs the workload on a sheet of its own. A workload that ignores the end of its context is left behind; its
// broker is dead or not to be trusted then, which the caller sees from errHangs.
func (w workload) do(ctx context.Context, e env) (*figures.Sheet, error) {
	limit := w.limit(e.seconds)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	e.sheet = figures.NewSheet()
	done := make(chan error, 1)
	go func() { done <- w.run(ctx, &e) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(cmp.Or(w.grace, 10*time.Second)):
			return figures.NewSheet(), fmt.Errorf("%w: %w", errHangs, context.Cause(ctx))
		}
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return e.sheet, err
}

// named finds a figure among those of all workloads.
func named(all []workload, name string) (figures.Figure, bool) {
	for _, w := range all {
		for _, f := range w.figures {
			if f.Name == name {
				return f, true
			}
		}
	}
	return figures.Figure{}, false
}
