package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
)

// work is a piece of work that sides do in turn.
type work struct {
	name    string // what -only chooses it by; several may share one
	figures []figures.Figure
	sides   []figures.Side
	limit   time.Duration
	run     func(context.Context, *bench) error
}

func (w work) chosen(only string) bool {
	chosen := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	return len(chosen) == 0 || slices.Contains(chosen, w.name)
}

// do runs the work on a sheet of its own.
func (w work) do(ctx context.Context, b *bench) (*figures.Sheet, error) {
	limit := time.Duration(b.slow * max(b.scale, 1) * float64(w.limit))
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %v", limit))
	defer cancel()
	b.sheet = figures.NewSheet()
	return b.sheet, w.run(ctx, b)
}
