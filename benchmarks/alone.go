package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/rig"
)

// bound is a line of ALONE.md: what is asked of figures of our own broker.
type bound struct {
	what    string
	asked   string
	figures []string
	holds   func(medians []float64) bool
}

// flat: no figure is more than 15 % above the first.
func flat(v []float64) bool { return slices.Max(v[1:]) <= 1.15*v[0] }

func under(limit float64) func([]float64) bool {
	return func(v []float64) bool { return v[0] <= limit }
}

func series(name string, counts []int) []string {
	var out []string
	for _, n := range counts {
		out = append(out, fmt.Sprintf("%s-%d", name, n))
	}
	return out
}

// What has no figure in the promise ("costs no memory", "bounded") gets one here, so that it can be missed.
var bounds = []bound{
	{"cost per append, 1, 100 and 1,000 segments", "flat within 15 %", series("append-segments", segmentCounts), flat},
	{"cost per fetch, 1, 100 and 1,000 segments", "flat within 15 %", series("fetch-segments", segmentCounts), flat},
	{"cost per append, 10, 1,000 and 10,000 partitions", "flat within 15 %", series("append-partitions", partitionCounts), flat},
	{"cost per fetch, 10, 1,000 and 10,000 partitions", "flat within 15 %", series("fetch-partitions", partitionCounts), flat},
	{"10,000 idle partitions, CPU", "none: at most 5 ms a second", []string{"idle-cpu"}, under(5)},
	{"10,000 idle partitions, memory of each", "at most 4 KB", []string{"idle-each"}, under(4)},
	{"50 slow readers, memory", "none: at most 8 MB (each asks for 500 MB)", []string{"slow-memory"}, under(8)},
	{"the tail alone, and beside a reader far behind", "at most 20 % slower", []string{"tail-alone", "tail-beside"},
		func(v []float64) bool { return v[1] >= 0.8*v[0] }},
	{"2,000 connections, memory of each", "bounded: at most 64 KB", []string{"connections-each"}, under(64)},
}

func aloneWork() []workload { return slices.Concat(costWork(), boundWork()) }

// other runs f with a broker of its own, on a fresh folder, that ends with it.
func (e *env) other(ctx context.Context, name string, f func(*env) error) (err error) {
	p, err := e.fresh(name)
	if err != nil {
		return err
	}
	defer func() {
		if kerr := p.Kill(); err == nil {
			err = kerr
		}
	}()
	if err := p.Start(ctx); err != nil {
		return err
	}
	own := *e
	own.broker, own.seeds = p, []string{p.Addr}
	return f(&own)
}

// measureAlone measures what has to stay flat and bounded on our server, and writes the page after every workload.
func measureAlone(ctx context.Context, f flags, work, bin string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.limit, fmt.Errorf("the run's limit of %v is over", f.limit))
	defer cancel()
	t := newTables(aloneWork(), nil)
	head := "# What stays flat, and what stays bounded\n\nWritten by `make bench-alone`; no figure here is typed by hand. Our server alone, acks=all synced: [README.md](README.md).\n\n" + rig.Setting(ctx, work)
	s := &stage{work: work, seconds: f.seconds, only: f.only, out: os.Stdout, tables: t, fresh: func(dir string) (*rig.Process, error) { return rig.Millrace(bin, dir) }}
	page := func() string { return head + fmt.Sprintf("\nState of the run: %s.\n", t.state) + boundsTable(t) }
	if f.results != "" {
		s.save = func() error { return figures.ReplaceFile(f.results, page()) }
	}
	began := time.Now()
	for round := range f.rounds {
		if ctx.Err() != nil {
			break
		}
		t.state = fmt.Sprintf("broken off in round %d of %d", round+1, f.rounds)
		fmt.Fprintf(s.out, "\n-- round %d of %d (%v)\n", round+1, f.rounds, time.Since(began).Round(time.Second))
		if err := s.turn(ctx, contender{side: ourSide, start: s.fresh}, aloneWork(), round); err != nil {
			return err
		}
	}
	t.state = fmt.Sprintf("complete, %d rounds in %v", f.rounds, time.Since(began).Round(time.Second))
	if ctx.Err() != nil {
		t.state = fmt.Sprintf("broken off, %v", context.Cause(ctx))
	}
	fmt.Fprintf(s.out, "\n%s", page())
	if s.save == nil {
		return nil
	}
	return s.save()
}

func boundsTable(t *tables) string {
	var b strings.Builder
	b.WriteString("\nMedians, in brackets the lowest and the highest round.\n\n| what | asked | measured | reached |\n|---|---|---|---|\n")
	for _, r := range bounds {
		var medians []float64
		var cells []string
		for _, name := range r.figures {
			f, _ := named(t.all, name)
			cells = append(cells, t.Cell(ourSide, f))
			if s := t.Spread(ourSide, name); s.Rounds > 0 {
				medians = append(medians, s.Median)
			}
		}
		said := "not measured"
		if len(medians) == len(r.figures) {
			said = "**no**"
			if r.holds(medians) {
				said = "yes"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.what, r.asked, strings.Join(cells, "; "), said)
	}
	b.WriteString("\n## Everything measured\n\n| figure | |\n|---|---|\n")
	for _, w := range t.all {
		for _, f := range w.figures {
			fmt.Fprintf(&b, "| %s | %s |\n", f.What, t.Cell(ourSide, f))
		}
	}
	return b.String()
}
