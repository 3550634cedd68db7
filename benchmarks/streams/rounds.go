package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/rig"
)

// host is a broker that takes part in every round, and the sides that work on it.
type host struct {
	name  string
	sides []figures.Side
	start func(dir string) (*rig.Process, error)
}

// stage runs work in rounds and shows figures as they come.
type stage struct {
	flags
	work  string // folder for everything
	out   io.Writer
	page  *page
	began time.Time
}

// measure runs all rounds. The page is written after every piece of work, so a run that is cut short leaves what it has.
func measure(ctx context.Context, f flags, work string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.limit, fmt.Errorf("the run's limit of %v is over", f.limit))
	defer cancel()
	hosts := []host{{rig.MillraceName, []figures.Side{ours}, func(dir string) (*rig.Process, error) { return rig.Millrace(f.server, dir) }}}
	if f.kafka != "" {
		hosts = append(hosts, host{rig.KafkaName, []figures.Side{oursOnKafka, kstreams, gokaSide}, func(dir string) (*rig.Process, error) { return rig.Kafka(f.kafka, dir) }})
	}
	s := &stage{flags: f, work: work, out: os.Stdout, began: time.Now(),
		page: &page{Collected: figures.NewCollected(), head: head(ctx, f, work), all: allWork(f.nexmark)}}
	if s.page.rows = asked; f.nexmark {
		s.page.rows = askedOfNexmark()
	}
	for round := range f.rounds {
		for i := range hosts {
			if ctx.Err() != nil {
				break
			}
			h := hosts[(i+round)%len(hosts)] // whoever begins changes from round to round
			s.page.state = fmt.Sprintf("broken off in round %d of %d, on %s, after %v", round+1, f.rounds, h.name, time.Since(s.began).Round(time.Second))
			if err := s.turn(ctx, h, round); err != nil {
				return err
			}
		}
	}
	s.page.state = fmt.Sprintf("complete, %d rounds in %v", f.rounds, time.Since(s.began).Round(time.Second))
	if ctx.Err() != nil {
		s.page.state = fmt.Sprintf("broken off, %v", context.Cause(ctx))
	}
	fmt.Fprintf(s.out, "\n%s", s.page)
	return s.save()
}

// turn is one broker on a fresh folder, and every side on it doing all the work. Whatever fails is a failure of its
// figures; only the end of ctx ends the turn.
func (s *stage) turn(ctx context.Context, h host, round int) (err error) {
	fmt.Fprintf(s.out, "\n-- round %d of %d: on %s (%v)\n", round+1, s.rounds, h.name, time.Since(s.began).Round(time.Second))
	dir, err := os.MkdirTemp(s.work, "round-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	broker, err := h.start(filepath.Join(dir, "broker"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Kill()) }()
	ready := broker.Start(ctx)
	if ready == nil {
		ready = s.load(ctx, cluster{broker.Addr})
	}
	n := 0
	for _, w := range s.page.all {
		if !w.chosen(s.only) {
			continue
		}
		for i := range h.sides {
			side := h.sides[(i+round)%len(h.sides)]
			if ctx.Err() != nil || !slices.Contains(w.sides, side) {
				continue // the run's end is no failure of what has not run
			}
			n++
			b := &bench{cluster: cluster{broker.Addr}, flags: s.flags, side: side, broker: broker,
				dir: filepath.Join(dir, fmt.Sprintf("%s-%d", w.name, n)), id: fmt.Sprintf("%s-%d", w.name, n)}
			found, err := figures.NewSheet(), ready
			if err == nil {
				found, err = w.do(ctx, b)
			}
			if ctx.Err() != nil {
				return os.RemoveAll(b.dir) // what the end of the run has cut off is no failure
			}
			if err := errors.Join(s.note(side, w, found, err), os.RemoveAll(b.dir)); err != nil {
				return err
			}
			if err != nil && rig.Ping(broker.Addr) != nil {
				ready = fmt.Errorf("the broker does not answer any more")
			}
		}
	}
	return nil
}

// load gives a broker the events that all its work reads.
func (s *stage) load(ctx context.Context, c cluster) error {
	b := &bench{flags: s.flags}
	if s.nexmark {
		return loadNexmark(ctx, c, b.sized(nexmarkEvents))
	}
	return loadClicks(ctx, c, b.sized(clickEvents))
}

// note shows and keeps what a piece of work gave.
func (s *stage) note(who figures.Side, w work, found *figures.Sheet, err error) error {
	for _, f := range w.figures {
		if v, ok := found.Values[f.Name]; ok {
			fmt.Fprintf(s.out, "%-24s %-72s %s\n", who, f.What, figures.Format(v, f.Unit))
		}
	}
	if err != nil {
		fmt.Fprintf(s.out, "%-24s %-72s FAILED: %v\n", who, w.figures[0].What, err)
	}
	s.page.Add(who, w.figures, found, err)
	return s.save()
}

func (s *stage) save() error {
	if s.results == "" {
		return nil
	}
	return figures.ReplaceFile(s.results, s.page.String())
}

// head is the beginning of the page: what is compared, on what.
func head(ctx context.Context, f flags, work string) string {
	title, target := "# Stream jobs, side by side", "bench-streams"
	if f.nexmark {
		title, target = "# Nexmark, side by side", "bench-nexmark"
	}
	lines := append(rig.KafkaLines(ctx, f.kafka),
		rig.Line{What: "goka", Value: rig.ModuleVersion("github.com/lovoo/goka") + ", its own settings"},
		rig.Line{What: "jobs on Kafka Streams", Value: "Kafka Streams of the same jars, java " + javaHeap + ", exactly_once_v2"})
	if f.kafka == "" {
		lines = nil
	}
	lines = append(lines, rig.Line{What: "scale", Value: fmt.Sprint(f.scale)})
	return title + "\n\nWritten by `make " + target + "`; no figure here is typed by hand. What is compared, and how fairly: [README.md](README.md#stream-jobs).\n\n" +
		rig.Setting(ctx, work, lines...)
}
