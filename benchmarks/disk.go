package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/core/vfs"
)

// diskWork says what the disk allows a log that syncs each append of one client before it answers.
func diskWork() []workload {
	return []workload{{name: "disk", figures: []figures.Figure{
		figures.More("disk-syncs", "the disk alone: appends of 170 B to one file, each synced", "acks/s"),
	}, run: func(ctx context.Context, e *env) error {
		n, err := syncedAppends(ctx, e.dir, e.seconds)
		e.put("disk-syncs", n)
		return err
	}}}
}

// syncedAppends appends what a batch of one small record takes and syncs it as our log does, again and again.
func syncedAppends(ctx context.Context, dir string, seconds time.Duration) (perSecond float64, err error) {
	fs, path := vfs.OS(), filepath.Join(dir, "appends")
	f, err := fs.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), fs.Remove(path)) }()
	batch := letters(170)
	n := int64(0)
	began := time.Now()
	for ; time.Since(began) < seconds && ctx.Err() == nil; n++ {
		if _, err := f.WriteAt(batch, n*int64(len(batch))); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}
