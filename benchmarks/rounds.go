package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/rig"
)

// contender is a broker that takes part in every round.
type contender struct {
	side  figures.Side
	start func(dir string) (*rig.Process, error)
	skip  map[string]bool // workloads by name that it takes no part in
}

// stage runs workloads against contenders and shows figures as they come.
type stage struct {
	work    string // folder for everything
	seconds time.Duration
	only    string
	out     io.Writer
	tables  *tables
	save    func() error                           // after every workload; nil = nothing is written
	fresh   func(dir string) (*rig.Process, error) // for workloads that need more brokers of ours
	gently  bool                                   // brokers are stopped at the end, not killed, and may write what they have to say
}

// turn is one contender on a fresh folder going through all workloads. Whatever fails is a failure of its rows; only the
// end of ctx ends the turn.
func (s *stage) turn(ctx context.Context, c contender, all []workload, round int) error {
	dir := filepath.Join(s.work, fmt.Sprintf("round%d-%s", round, strings.ReplaceAll(string(c.side), " ", "-")))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	p, err := c.start(filepath.Join(dir, "broker"))
	if err != nil {
		return err
	}
	startErr := p.Start(ctx)
	for _, w := range all {
		if ctx.Err() != nil {
			break // the run's end is no failure of what has not run
		}
		if c.skip[w.name] || !w.chosen(s.only) {
			continue
		}
		found, err := figures.NewSheet(), startErr
		if err == nil {
			found, err = w.do(ctx, env{broker: p, seeds: []string{p.Addr}, dir: dir, seconds: s.seconds, fresh: func(name string) (*rig.Process, error) {
				return s.fresh(filepath.Join(dir, name))
			}})
			startErr = s.revive(ctx, p, err)
		}
		if err := s.note(c.side, w, found, err); err != nil {
			return errors.Join(err, p.Kill())
		}
	}
	end := p.Kill
	if s.gently {
		end = p.Stop
	}
	return errors.Join(end(), os.RemoveAll(dir))
}

// revive starts a broker again that a failed workload left hanging or dead.
func (s *stage) revive(ctx context.Context, p *rig.Process, failed error) error {
	if failed == nil || ctx.Err() != nil || (!errors.Is(failed, errHangs) && rig.Ping(p.Addr) == nil) {
		return nil
	}
	return errors.Join(p.Kill(), p.Start(ctx))
}

// note shows and keeps what a workload gave.
func (s *stage) note(who figures.Side, w workload, found *figures.Sheet, err error) error {
	for _, f := range w.figures {
		if v, ok := found.Values[f.Name]; ok {
			fmt.Fprintf(s.out, "%-72s %s\n", f.What, figures.Format(v, f.Unit))
		}
	}
	if err != nil {
		fmt.Fprintf(s.out, "%-72s FAILED: %s\n", w.figures[0].What, figures.Brief(err))
	}
	s.tables.Add(who, w.figures, found, err)
	if s.save == nil {
		return nil
	}
	return s.save()
}

// disk measures what needs no broker.
func (s *stage) disk(ctx context.Context) error {
	for _, w := range diskWork() {
		if !w.chosen(s.only) {
			continue
		}
		found, err := w.do(ctx, env{dir: s.work, seconds: min(s.seconds, 2*time.Second)})
		if err := s.note(diskSide, w, found, err); err != nil {
			return err
		}
	}
	return nil
}
