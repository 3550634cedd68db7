package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/inspect"
)

// site is a cluster with an application that counts, and who looks at it.
type site struct {
	t         *testing.T
	ctx       context.Context
	b         streams.Cluster
	client    *kgo.Client
	inspector *inspect.Inspector
}

func newSite(t *testing.T) *site {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &site{t: t, ctx: ctx, b: brokertest.Start(t)}
	var err error
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.b.Seeds()...), kgo.Dialer(s.b.Dial)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	if _, err := kadm.NewClient(s.client).CreateTopics(ctx, 2, 1, nil, "lines", "counts", "minutes", "x-topology"); err != nil {
		t.Fatal(err)
	}
	if s.inspector, err = inspect.Open(ctx, s.b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.inspector.Close)
	return s
}

func app() *streams.App {
	app := streams.New("words")
	words := app.Stream[string, string]("lines").FlatMapValues(strings.FieldsSeq).GroupBy(strings.ToLower, streams.As("by-word"))
	words.Count(streams.As("counts")).To("counts")
	words.Windowed(streams.Tumbling(time.Minute)).Count(streams.As("per-minute")).
		Map(func(_ streams.Window, k string, n int64) (string, int64) { return k, n }).To("minutes")
	return app
}

var noon = time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)

func (s *site) send(lines ...string) {
	s.t.Helper()
	for _, l := range lines {
		if err := s.client.ProduceSync(s.ctx, &kgo.Record{Topic: "lines", Value: []byte(l), Timestamp: noon}).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// run starts the application and waits until it is not behind; stop ends it.
func (s *site) run(opts ...streams.RunOpt) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() {
		done <- app().Run(ctx, s.b, append(opts, streams.CommitEvery(20*time.Millisecond), streams.Leave())...)
	}()
	for behind := int64(1); behind > 0; {
		lags, err := s.inspector.Lags(s.ctx, "words")
		if err != nil && !errors.Is(err, inspect.ErrUnknown) && !strings.Contains(err.Error(), "UNKNOWN_TOPIC") {
			s.t.Fatal(err)
		}
		behind = 1
		if err == nil {
			behind = 0
			for _, l := range lags {
				behind += l.Lag
			}
		}
		select {
		case err := <-done:
			s.t.Fatal("the application ended: ", err)
		case <-time.After(10 * time.Millisecond): // between two looks
		}
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Fatal(err)
		}
	}
}

// rows prints a store.
func (s *site) rows(store string, f inspect.Filter) string {
	s.t.Helper()
	rows, err := s.inspector.State(s.ctx, "words", store, f)
	if err != nil {
		s.t.Fatal(err)
	}
	var all []string
	for _, r := range rows {
		row := r.Key + "=" + r.Value
		if r.Window != nil {
			row = r.Window.Format("15:04") + " " + row
		}
		if r.Time == nil || !r.Time.Equal(noon) {
			s.t.Errorf("the time of row %s is %v", row, r.Time)
		}
		all = append(all, row)
	}
	return strings.Join(sorted(all), ", ")
}

func sorted(s []string) []string {
	for i := range s {
		for j := range i {
			if s[i] < s[j] {
				s[i], s[j] = s[j], s[i]
			}
		}
	}
	return s
}

func TestInspect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.send("a rose is a rose", "is a rose")
	dir := t.TempDir()
	stop := s.run(streams.StateDir(dir))

	apps, err := s.inspector.Applications(s.ctx)
	if err != nil || len(apps) != 1 {
		t.Fatalf("applications are %v, %v", apps, err)
	}
	if got := fmt.Sprintln(apps[0].ID, apps[0].Live(), apps[0].Stores, apps[0].Internal, apps[0].Missing); got !=
		"words true [counts per-minute] [words-by-word-repartition words-counts-changelog words-per-minute-changelog] []\n" {
		t.Errorf("application is %s", got)
	}
	d, err := s.inspector.Describe(s.ctx, "words")
	if err != nil || d.Text != app().Describe() || d.Mermaid() != app().Mermaid() || d.DOT() != app().DOT() {
		t.Errorf("the description is not that of the application: %v\n%s", err, d.Text)
	}
	if got := s.rows("counts", inspect.Filter{}); got != "a=3, is=2, rose=3" {
		t.Errorf("counts are %s", got)
	}
	if got := s.rows("counts", inspect.Filter{Key: "is"}); got != "is=2" {
		t.Errorf("the count of one word is %s", got)
	}
	if got := s.rows("per-minute", inspect.Filter{Prefix: "ro"}); got != "12:00 rose=3" {
		t.Errorf("the count of a minute is %s", got)
	}
	if rows, err := s.inspector.State(s.ctx, "words", "counts", inspect.Filter{Limit: 2}); err != nil || len(rows) != 2 {
		t.Errorf("two rows are %v, %v", rows, err)
	}
	if _, err := s.inspector.State(s.ctx, "words", "nothing", inspect.Filter{}); err == nil || !strings.Contains(err.Error(), "it has counts, per-minute") {
		t.Errorf("a store that is not there: %v", err)
	}
	sizes, err := s.inspector.Sizes(s.ctx, "words")
	if err != nil || len(sizes) != 3 || sizes[1].Offsets < 3 || sizes[1].Partitions != 2 {
		t.Errorf("sizes are %v, %v", sizes, err)
	}
	if _, err := s.inspector.PlanReset(s.ctx, "words", inspect.From{}); !errors.Is(err, inspect.ErrLive) {
		t.Errorf("a reset of a live application: %v", err)
	}
	if _, err := s.inspector.Describe(s.ctx, "nobody"); !errors.Is(err, inspect.ErrUnknown) {
		t.Errorf("an application that is not there: %v", err)
	}
	stop()

	// Begin anew: in the same state folder, and all is counted again, once.
	plan, err := s.inspector.PlanReset(s.ctx, "words", inspect.From{})
	if err != nil {
		t.Fatal(err)
	}
	var was, at int64
	for _, o := range plan.Offsets {
		was, at = was+max(0, o.Was), at+o.At
	}
	if was != 2 || at != 0 || len(plan.Topics) != 3 {
		t.Errorf("the plan is %+v", plan)
	}
	if got := s.rows("counts", inspect.Filter{}); got != "a=3, is=2, rose=3" {
		t.Errorf("a plan has changed the counts to %s", got)
	}
	if err := plan.Apply(s.ctx); err != nil {
		t.Fatal(err)
	}
	if apps, err := s.inspector.Applications(s.ctx); err != nil || len(apps) != 1 || len(apps[0].Internal)+len(apps[0].Missing) != 0 {
		t.Errorf("after the reset there is %+v, %v", apps, err)
	}
	s.send("rose")
	s.run(streams.StateDir(dir))()
	if got := s.rows("counts", inspect.Filter{}); got != "a=3, is=2, rose=4" {
		t.Errorf("after a reset to the start the counts are %s", got)
	}

	// From the end: only what comes from now on.
	if plan, err = s.inspector.PlanReset(s.ctx, "words", inspect.From{Latest: true}); err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.send("is")
	s.run()()
	if got := s.rows("counts", inspect.Filter{}); got != "is=1" {
		t.Errorf("after a reset to the end the counts are %s", got)
	}
	// From a time: all records are of noon.
	if plan, err = s.inspector.PlanReset(s.ctx, "words", inspect.From{At: noon.Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, o := range plan.Offsets {
		if o.At != 0 {
			t.Errorf("an hour before the first record reading begins at %d", o.At)
		}
	}
}
