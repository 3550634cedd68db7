package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// contender is a broker that takes part in every round.
type contender struct {
	side  side
	start func(dir string) (*process, error)
	skip  map[string]bool // workloads by name that it takes no part in
}

// stage runs workloads against contenders and shows figures as they come.
type stage struct {
	work    string // folder for everything
	seconds time.Duration
	only    string
	out     io.Writer
	tables  *tables
	save    func() error                       // after every workload; nil = nothing is written
	fresh   func(dir string) (*process, error) // for workloads that need more brokers of ours
	gently  bool                               // brokers are stopped at the end, not killed, and may write what they have to say
}

// turn is one contender on a fresh folder going through all workloads. Whatever fails is a failure of its rows; only the
// end of ctx ends the turn.
func (s *stage) turn(ctx context.Context, c contender, all []workload, round int) error {
	dir := filepath.Join(s.work, fmt.Sprintf("round%d-%d", round, c.side))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	p, err := c.start(filepath.Join(dir, "broker"))
	if err != nil {
		return err
	}
	startErr := p.start(ctx)
	for _, w := range all {
		if ctx.Err() != nil {
			break // the run's end is no failure of what has not run
		}
		if c.skip[w.name] || !w.chosen(s.only) {
			continue
		}
		found, err := newSheet(), startErr
		if err == nil {
			found, err = w.do(ctx, env{broker: p, seeds: []string{p.addr}, dir: dir, seconds: s.seconds, fresh: func(name string) (*process, error) {
				return s.fresh(filepath.Join(dir, name))
			}})
			startErr = s.revive(ctx, p, err)
		}
		if err := s.note(c.side, w, found, err); err != nil {
			return errors.Join(err, p.kill())
		}
	}
	end := p.kill
	if s.gently {
		end = p.stop
	}
	return errors.Join(end(), os.RemoveAll(dir))
}

// revive starts a broker again that a failed workload left hanging or dead.
func (s *stage) revive(ctx context.Context, p *process, failed error) error {
	if failed == nil || ctx.Err() != nil || (!errors.Is(failed, errHangs) && ping(p.addr) == nil) {
		return nil
	}
	return errors.Join(p.kill(), p.start(ctx))
}

// note shows and keeps what a workload gave.
func (s *stage) note(who side, w workload, found *sheet, err error) error {
	for _, f := range w.figures {
		if v, ok := found.values[f.name]; ok {
			fmt.Fprintf(s.out, "%-72s %s\n", f.what, format(v, f.unit))
		}
	}
	if err != nil {
		fmt.Fprintf(s.out, "%-72s FAILED: %s\n", w.figures[0].what, brief(err))
	}
	s.tables.add(who, w, found, err)
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

// replaceFile writes a file in one step.
func replaceFile(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
