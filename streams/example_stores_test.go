package streams_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/state/pebble"
	"github.com/millrace/millrace/streams/streamstest"
)

// guard counts failed logins by user and minute, and tells of users with many in the
// last ten minutes.
type guard struct {
	failures streams.WindowRef[string, int64]
	out      *streams.Emitter[string, int64]
}

func (g *guard) Init(_ streams.TaskContext, out *streams.Emitter[string, int64]) error {
	g.out = out
	return nil
}

func (g *guard) Process(c streams.TaskContext, r *streams.Record[string, string]) error {
	failures, minute := g.failures.In(c), r.Time.Truncate(time.Minute)
	n, _, err := failures.Get(r.Key, minute)
	if err != nil {
		return err
	}
	if err := failures.Put(r.Key, minute, n+1); err != nil {
		return err
	}
	sum := int64(0)
	for _, n := range failures.Fetch(r.Key, minute.Add(-9*time.Minute), time.Time{}) {
		sum += n
	}
	if sum >= 3 {
		g.out.Emit(r.Key, sum)
	}
	return nil
}

func (g *guard) Close() error { return nil }

func guardApp() *streams.App {
	app := streams.New("guard")
	failures := app.WindowStore[string, int64]("failures", time.Minute, time.Hour)
	app.Stream[string, string]("failed-logins").
		Process(func() streams.Processor[string, string, string, int64] { return &guard{failures: failures} }, streams.Use(failures)).
		To("alarms")
	return app
}

func ExampleApp_WindowStore() {
	d := streamstest.New(nil, guardApp())
	in, out := d.In[string, string]("failed-logins"), d.Out[string, int64]("alarms")
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, minutes := range []int{0, 1, 30, 31, 35} {
		in.At(at.Add(time.Duration(minutes)*time.Minute), "ann", "wrong password")
	}
	d.Crash()
	in.At(at.Add(36*time.Minute), "ann", "wrong password")
	for _, r := range out.Records() {
		fmt.Println(r.Key, r.Value, r.Time.Format(time.TimeOnly))
	}
	// Output:
	// ann 3 12:35:00
	// ann 4 12:36:00
}

// A job with its large stores in Pebble.
func ExampleEngine() {
	run := func(ctx context.Context, app *streams.App, cluster streams.Cluster) error {
		return app.Run(ctx, cluster,
			streams.StateDir("/var/lib/guard"),
			streams.Engine(pebble.New(pebble.Options{CacheBytes: 512 << 20})),
			streams.ReadCache(64<<20),
			streams.CleanUpAfter(time.Hour))
	}
	_ = run // it would run until ctx ends
}

func ExampleLogged() {
	app := streams.New("dedupe")
	seen := app.Store[string, bool]("seen", streams.Retention(time.Hour),
		streams.StoreIn(pebble.New(pebble.Options{})),
		streams.ChangelogConfig(map[string]string{"segment.bytes": "67108864"}))
	looked := app.Store[string, string]("looked-up", streams.InMemory(), streams.Logged(false))
	app.Stream[string, string]("in").TryFilter(func(ctx context.Context, r *streams.Record[string, string]) (bool, error) {
		if _, known, err := looked.In(ctx).Get(r.Key); known || err != nil {
			return false, err
		}
		if err := looked.In(ctx).Put(r.Key, r.Value); err != nil {
			return false, err
		}
		_, before, err := seen.In(ctx).PutIfAbsent(r.Value, true)
		return !before, err
	}, streams.Use(seen, looked)).To("out")
	d := streamstest.New(nil, app)
	in := d.In[string, string]("in")
	for _, v := range []string{"a", "b", "a"} {
		in.Send(v, v)
	}
	fmt.Println(len(d.Written()))
	// Output: 2
}
