package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
	gokastorage "github.com/lovoo/goka/storage"

	"github.com/IBM/sarama"

	"github.com/millrace/millrace/benchmarks/streams/clicks"
	"github.com/millrace/millrace/benchmarks/streams/nexmark"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/state/pebble"
)

// jobWord, as first argument, makes this program be one job in a process of its own.
const jobWord = "job"

// progress tells on standard output when the first record came, one in the middle, and the last one.
type progress struct {
	middle, total int64
	n             atomic.Int64
	mu            sync.Mutex
	out           io.Writer
}

func (p *progress) seen() {
	switch p.n.Add(1) {
	case 1:
		p.say("first")
	case p.middle:
		p.say("middle")
	case p.total:
		p.say("last")
	}
}

func (p *progress) say(what string) { p.line("%s %d", what, time.Now().UnixNano()) }

func (p *progress) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Who reads this has gone when it fails, and then ends us.
	_, _ = fmt.Fprintf(p.out, "@ "+format+"\n", args...)
}

// beJob runs a job until its standard input ends.
func beJob(ctx context.Context, s spec, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end too
		stop()
	}()
	end, err := profile(s)
	if err != nil {
		return err
	}
	p := &progress{middle: s.middle, total: s.total, out: out}
	switch s.engine {
	case millraceEngine:
		err = onMillrace(ctx, s, p)
	case gokaEngine:
		err = onGoka(ctx, s, p)
	default:
		err = fmt.Errorf("engine %q is not one of this program's", s.engine)
	}
	p.line("processed %d", p.n.Load())
	if perr := end(); err == nil {
		err = perr
	}
	return err
}

// profile starts a CPU profile, if one is asked for, and returns what writes it and that of the allocations.
func profile(s spec) (end func() error, err error) {
	if s.profile == "" {
		return func() error { return nil }, nil
	}
	name := filepath.Join(s.profile, s.id)
	f, err := os.Create(name + ".cpu.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			return err
		}
		runtime.GC() // the profile of allocations is that of the last collection
		a, err := os.Create(name + ".allocs.pprof")
		if err != nil {
			return err
		}
		defer a.Close()
		return pprof.Lookup("allocs").WriteTo(a, 0)
	}, nil
}

// cachedKeys are as many as fit into what Kafka Streams takes for its cache, 10 MB: about 100 bytes each.
const cachedKeys = 100_000

// onMillrace runs the job on our streams.
func onMillrace(ctx context.Context, s spec, p *progress) error {
	cached := 0
	if s.cached {
		cached = cachedKeys
	}
	app, err := clicks.Job(s.job, s.id, s.in, s.out, clicks.Options{Seen: p.seen, Cached: cached})
	if slices.Contains(nexmark.Names, s.job) {
		in := append(strings.Split(s.in, ","), "", "")
		app, err = nexmark.Query(s.job, s.id, nexmark.Topics{Persons: in[0], Auctions: in[1], Bids: in[2]}, s.out, cached, p.seen)
	}
	if err != nil {
		return err
	}
	opts := []streams.RunOpt{streams.StateDir(s.dir), streams.Workers(s.workers), streams.CommitEvery(s.commit),
		streams.Logger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))}
	if s.store == pebbleStore {
		opts = append(opts, streams.Engine(pebble.New(pebble.Options{})))
	}
	return app.Run(ctx, streams.Brokers(s.brokers), opts...)
}

// onGoka counts the records of each key as goka does it: at least once, the table in goleveldb and in a compacted topic.
// The settings are goka's own, but that it starts at the beginning. With cached, counts are kept and not emitted.
func onGoka(ctx context.Context, s spec, p *progress) error {
	if s.job != clicks.Count {
		return fmt.Errorf("there is no job %q on goka", s.job)
	}
	config := goka.DefaultConfig()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	goka.ReplaceGlobalConfig(config)
	tm := goka.NewTopicManagerConfig()
	tm.Table.Replication, tm.Stream.Replication = 1, 1
	edges := []goka.Edge{goka.Persist(new(codec.Int64))}
	if !s.cached {
		edges = append(edges, goka.Output(goka.Stream(s.out), new(codec.Int64)))
	}
	count := func(ctx goka.Context, _ any) {
		p.seen()
		n, _ := ctx.Value().(int64) // nil before the first one
		ctx.SetValue(n + 1)
		if !s.cached {
			ctx.Emit(goka.Stream(s.out), ctx.Key(), n+1)
		}
	}
	processor, err := goka.NewProcessor([]string{s.brokers},
		goka.DefineGroup(goka.Group(s.id), append(edges, goka.Input(goka.Stream(s.in), new(codec.String), count))...),
		goka.WithTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(config, tm)),
		goka.WithStorageBuilder(gokastorage.DefaultBuilder(s.dir)))
	if err != nil {
		return err
	}
	return processor.Run(ctx)
}
