package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/streams/clicks"
)

// The state that a job has when it is killed: rows of 1 KB.
const (
	restartRows     = 100_000
	restartRowsLong = 5_000_000
	restartRowBytes = 1000
	restartWaiting  = 1000 // records that come while the job is dead
)

func restartWork() []work {
	figuresOf := func(name, what string) []figures.Figure {
		return []figures.Figure{
			figures.Less(name, what+": to the first record", "ms"),
			figures.More(name+"-state", what+": state on disk", "MB"),
		}
	}
	const what = "restart after SIGKILL"
	return []work{
		{name: "restart", sides: streamsSides, limit: 2 * time.Minute, figures: figuresOf("restart", what),
			run: func(ctx context.Context, b *bench) error { return b.restart(ctx, "restart", "") }},
		{name: "restart", sides: []figures.Side{kstreams}, limit: 2 * time.Minute, figures: figuresOf("restart-transactional", what+", transactional stores on"),
			run: func(ctx context.Context, b *bench) error {
				return b.restart(ctx, "restart-transactional", ",enable.transactional.statestores:true")
			}},
	}
}

// restart gives a job state, kills it, and times its next start until it has processed a record. Kafka Streams gets a
// static member id, without which the group would wait for the dead member.
func (b *bench) restart(ctx context.Context, name, settings string) (err error) {
	rows := b.sized(restartRows)
	if b.long {
		rows = restartRowsLong
	}
	in := b.id + "-in"
	s := b.spec(clicks.Latest, in, rows)
	s.settings = "group.instance.id:bench" + settings
	if err := errors.Join(b.create(ctx, in), os.MkdirAll(s.dir, 0o755)); err != nil {
		return err
	}
	if err := b.loadRows(ctx, in, rows); err != nil {
		return err
	}
	p, err := b.startJob(s, b.broker)
	if err != nil {
		return err
	}
	_, err = p.await(ctx, "last")
	if err == nil {
		err = b.cluster.committed(ctx, s.id, in)
	}
	if err := errors.Join(err, p.kill()); err != nil {
		return err
	}
	size, err := folderMB(s.dir)
	if err != nil {
		return err
	}
	if err := b.loadRows(ctx, in, restartWaiting); err != nil {
		return err
	}
	s.total = restartWaiting
	if p, err = b.startJob(s, b.broker); err != nil {
		return err
	}
	first, err := p.await(ctx, "first")
	if err == nil {
		err = b.cluster.committed(ctx, s.id, in)
	}
	if err != nil {
		return errors.Join(err, p.kill())
	}
	if err := errors.Join(p.stop(), b.keyed(ctx, s.id+"-latest-changelog", rows)); err != nil {
		return err
	}
	b.put(name, milliseconds(first.at.Sub(p.began)))
	b.put(name+"-state", size)
	return nil
}

// loadRows writes one record for each of so many keys, of bytes that do not compress.
func (b *bench) loadRows(ctx context.Context, topic string, rows int64) error {
	e := clicks.NewEvents()
	n := 0
	return b.load(ctx, topic, rows, func(r *kgo.Record) {
		value := make([]byte, 0, restartRowBytes+10)
		for len(value) < restartRowBytes {
			value = strconv.AppendUint(value, uint64(e.Random()), 36)
		}
		r.Key, r.Value = clicks.AppendUser(nil, n), value
		n++
	})
}

// keyed checks that a topic has records of so many keys, all that there were.
func (b *bench) keyed(ctx context.Context, topic string, want int64) error {
	keys := make(map[string]bool, want)
	err := b.cluster.results(ctx, topic, func(r *kgo.Record) error {
		keys[string(r.Key)] = true
		return nil
	})
	if err == nil && int64(len(keys)) != want {
		err = fmt.Errorf("%s has %d keys, there are %d", topic, len(keys), want)
	}
	return err
}

// folderMB is what the files below a folder take.
func folderMB(dir string) (float64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "LOCK") {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return float64(size) / 1e6, err
}
