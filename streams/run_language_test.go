package streams_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams"
)

// patient sends a record on when its timer by the wall clock calls, and notes in a
// store how often: on a broker that is a commit without any input.
type patient struct {
	timers streams.TimersRef[string]
	calls  streams.KVRef[string, int64]
	out    *streams.Emitter[string, string]
}

func (p *patient) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	p.out = out
	out.OnTimer(p.timers, func(c streams.TaskContext, k string, _ time.Time) error {
		n, _, err := p.calls.In(c).Get(k)
		if err != nil {
			return err
		}
		out.Emit(k, fmt.Sprint("called ", n+1))
		c.Commit()
		return p.calls.In(c).Put(k, n+1)
	})
	return nil
}

func (p *patient) Process(c streams.TaskContext, r *streams.Record[string, string]) error {
	return p.timers.In(c).Set(r.Key, c.WallClock().Add(20*time.Millisecond))
}

func (p *patient) Close() error { return nil }

// language is an application of what needs the runtime's help: timers, a global
// table, a foreign-key join, times from contents.
func language() *streams.App {
	app := streams.New("language")
	timers, calls := app.Timers[string]("language-timers", streams.WallClock), app.Store[string, int64]("language-calls")
	in := app.Stream[string, string]("language-in", streams.TimestampBy(func(*streams.Record[string, string], time.Time) time.Time {
		return time.UnixMilli(77)
	}))
	in.Process(func() streams.Processor[string, string, string, string] {
		return &patient{timers: timers, calls: calls}
	},
		streams.Use(timers, calls)).To("language-out")
	in.JoinGlobal(app.GlobalTable[string, string]("language-names"), func(_, v string) string { return v },
		func(v, name string) string { return v + " is " + name }).To("language-out")
	app.Table[string, string]("language-rows").JoinFK(app.Table[string, string]("language-names"), func(_, v string) string { return v },
		func(v, name string) string { return v + " refers to " + name }).To("language-out")
	return app
}

// TestLanguageOnABroker: twice, so that the second run finds stores, timers and
// subscriptions of the first.
func TestLanguageOnABroker(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := cluster(t)
	admin := kadm.NewClient(client(t, b))
	if _, err := admin.CreateTopics(ctx, 2, 1, nil, "language-in", "language-out", "language-rows", "language-names"); err != nil {
		t.Fatal(err)
	}
	in := client(t, b, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	send := func(topic, k, v string) {
		t.Helper()
		if err := in.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte(k), Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	send("language-names", "x", "the first")
	out := client(t, b, kgo.ConsumeTopics("language-out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	dir := t.TempDir()
	for round := 1; round <= 2; round++ {
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			done <- language().Run(run, b, streams.StateDir(dir), streams.CommitEvery(20*time.Millisecond))
		}()
		send("language-in", "k", "x")
		if round == 1 {
			send("language-rows", "r", "x")
		} else {
			send("language-names", "x", "the second")
		}
		want := []string{fmt.Sprintf("k: called %d", round), "k: x is the first", fmt.Sprintf("r: x refers to %s", [...]string{"the first", "the second"}[round-1])}
		var got []string
		for len(got) < len(want) {
			fetches := out.PollFetches(ctx)
			if ctx.Err() != nil {
				t.Fatalf("round %d: got %q, want %q", round, got, want)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				got = append(got, string(r.Key)+": "+string(r.Value))
				if strings.Contains(string(r.Value), " is ") && r.Timestamp.UnixMilli() != 77 {
					t.Errorf("time is %v", r.Timestamp)
				}
			})
		}
		slices.Sort(got)
		if got[0] != want[0] || !strings.HasPrefix(got[1], "k: x is the ") || got[2] != want[2] {
			t.Errorf("round %d: got %q, want %q", round, got, want)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
