package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/benchmarks/rig"
)

// measureCluster runs what needs no process of our own on a cluster that is there.
func measureCluster(ctx context.Context, f flags) error {
	s := &stage{seconds: f.seconds, only: f.only, out: os.Stdout, tables: newTables(brokerWork(), nil)}
	for _, w := range brokerWork() {
		if w.process || !w.chosen(f.only) {
			continue
		}
		found, err := w.do(ctx, env{seeds: strings.Split(f.brokers, ","), seconds: f.seconds})
		if err := s.note(ourSide, w, found, err); err != nil {
			return err
		}
	}
	return nil
}

// profile runs the chosen workloads on a server that writes profiles of itself.
func profile(ctx context.Context, f flags, work, bin string) error {
	into, err := filepath.Abs(f.profile)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	all := append(brokerWork(), aloneWork()...)
	s := &stage{work: work, seconds: f.seconds, only: f.only, out: os.Stdout, tables: newTables(all, nil), gently: true,
		fresh: func(dir string) (*rig.Process, error) { return rig.Millrace(bin, dir) }}
	err = s.turn(ctx, contender{side: ourSide, start: func(dir string) (*rig.Process, error) {
		return rig.Millrace(bin, dir, "--profile-dir", into)
	}}, all, 0)
	if err == nil {
		fmt.Printf("profiles are in %s; look with: go tool pprof -http :0 %s\n", f.profile, filepath.Join(f.profile, "cpu.pprof"))
	}
	return err
}
