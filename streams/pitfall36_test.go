package streams_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
)

// upgraded is a job of which several releases run one after the other.
type upgraded struct {
	t    *testing.T
	ctx  context.Context
	b    streams.Cluster
	in   *kgo.Client
	out  *kgo.Client
	sent int
}

func newUpgraded(t *testing.T) *upgraded {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	u := &upgraded{t: t, ctx: ctx, b: cluster(t)}
	u.in = client(t, u.b)
	if _, err := kadm.NewClient(u.in).CreateTopics(ctx, 2, 1, nil, "upgraded-in", "upgraded-table", "upgraded-out", "upgraded-more"); err != nil {
		t.Fatal(err)
	}
	u.out = client(t, u.b, kgo.ConsumeTopics("upgraded-out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	return u
}

// send adds records of one key.
func (u *upgraded) send(n int) {
	u.t.Helper()
	for range n {
		if err := u.in.ProduceSync(u.ctx, &kgo.Record{Topic: "upgraded-in", Key: []byte("k"), Value: []byte("v")}).FirstErr(); err != nil {
			u.t.Fatal(err)
		}
	}
	u.sent += n
}

// release runs one until the count of the key is want.
func (u *upgraded) release(want int64, app *streams.App, opts ...streams.RunOpt) {
	u.t.Helper()
	run, stop := context.WithCancel(u.ctx)
	done := make(chan error, 1)
	go func() { done <- app.Run(run, u.b, append(opts, streams.CommitEvery(20*time.Millisecond))...) }()
	for last := int64(0); last != want; {
		fetches := u.out.PollFetches(u.ctx)
		if err := errors.Join(u.ctx.Err(), fetches.Err()); err != nil {
			stop()
			u.t.Fatalf("the count is %d, want %d: %v, %v", last, want, err, <-done)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n, err := serde.Int64.Decode(r.Value)
			if err != nil || n > want {
				u.t.Errorf("the count is %d, want up to %d: %v", n, want, err)
			}
			last = n
		})
	}
	stop()
	if err := <-done; err != nil {
		u.t.Fatal(err)
	}
}

// refused runs a release that must not start.
func (u *upgraded) refused(app *streams.App, kind error, texts ...string) {
	u.t.Helper()
	err := app.Run(u.ctx, u.b)
	if !errors.Is(err, kind) {
		u.t.Fatalf("the start ends with %v, want %v", err, kind)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			u.t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

// counting is a release: filters in front, a table beside, the count's name, and
// whether there is another store.
func counting(filters int, table bool, name string, more bool) *streams.App {
	app := streams.New("upgraded")
	s := app.Stream[string, string]("upgraded-in")
	for range filters {
		s = s.Filter(func(string) bool { return true })
	}
	if table {
		s = s.LeftJoinTable(app.Table[string, string]("upgraded-table"), func(v string, _ streams.Maybe[string]) string { return v })
	}
	var opts []streams.Opt
	if name != "" {
		opts = append(opts, streams.As(name))
	}
	s.GroupByKey().Count(opts...).To("upgraded-out")
	if more {
		s.GroupByKey().Reduce(func(a, b string) string { return a + b }, streams.As("more")).To("upgraded-more")
	}
	return app
}

// TestPitfall36 (KAFKA-9072, KAFKA-20464, KAFKA-20254): a release with operators more
// goes on from the state of the one before, on another machine too; one that would
// silently lose it is refused and says what to do.
func TestPitfall36(t *testing.T) {
	t.Parallel()
	u := newUpgraded(t)
	dir := t.TempDir()
	u.send(3)
	u.release(3, counting(0, false, "n", false), streams.StateDir(dir))
	u.send(2)
	u.release(5, counting(2, true, "n", true), streams.StateDir(dir)) // operators, a table and a store more
	u.send(1)
	u.release(6, counting(2, true, "n", true)) // elsewhere: from the changelogs alone

	// A store under another name, wherever it starts.
	for _, opts := range [][]streams.RunOpt{nil, {streams.StateDir(dir)}} {
		err := counting(2, true, "m", true).Run(u.ctx, u.b, opts...)
		if !errors.Is(err, streams.ErrUpgrade) || !strings.Contains(err.Error(), "store n is gone and m (rows (string, int64)) is new") ||
			!strings.Contains(err.Error(), "keep the old names with As") || !strings.Contains(err.Error(), "millrace streams reset upgraded") {
			t.Fatalf("a rename is not refused: %v", err)
		}
	}
	u.send(1)
	u.release(1, counting(2, true, "m", true), streams.Abandon("n"))
	// From then on the new name is the one that counts.
	u.send(1)
	u.release(2, counting(2, true, "m", true))
}

// TestStoreWithoutAName is the reason for RequireNames: an operator in front renames
// what follows.
func TestStoreWithoutAName(t *testing.T) {
	t.Parallel()
	u := newUpgraded(t)
	u.send(1)
	u.release(1, counting(0, false, "", false))
	u.refused(counting(1, false, "", false), streams.ErrUpgrade, "store upgraded-in.count is gone and upgraded-in.filter.count")
}

// TestStoreThatComesBack: a store that a release has dropped holds what was there
// before; to go on with it would leave out what was processed meanwhile.
func TestStoreThatComesBack(t *testing.T) {
	t.Parallel()
	u := newUpgraded(t)
	u.send(1)
	u.release(1, counting(0, false, "n", true))
	u.send(1)
	u.release(2, counting(0, false, "n", false))
	u.refused(counting(0, false, "n", true), streams.ErrStaleState, "upgraded-more-changelog has records")
}
