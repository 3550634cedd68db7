package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
)

// TestRowsAreMeasured: every figure that a page speaks of is one that a workload gives, and no two give the same.
func TestRowsAreMeasured(t *testing.T) {
	t.Parallel()
	all := append(brokerWork(), diskWork()...)
	for _, r := range section3 {
		for _, name := range []string{r.figure, r.against, r.disk} {
			if _, ok := named(all, name); name != "" && !ok {
				t.Errorf("row %q: nothing measures %q", r.what, name)
			}
		}
		if f, _ := named(all, r.figure); r.atLeast.IsNumber() && f.Less != r.atLeast.LessIsBetter() {
			t.Errorf("row %q asks for %v of a figure where less is better: %v", r.what, r.atLeast, f.Less)
		}
		if r.reach.IsNumber() && !r.atLeast.Reached(r.reach.Ratio) {
			t.Errorf("row %q reaches for less (%v) than it asks for (%v)", r.what, r.reach, r.atLeast)
		}
	}
	for _, b := range bounds {
		for _, name := range b.figures {
			if _, ok := named(aloneWork(), name); !ok {
				t.Errorf("bound %q: nothing measures %q", b.what, name)
			}
		}
	}
	seen := map[string]bool{}
	for _, w := range slices.Concat(all, aloneWork()) {
		for _, f := range w.figures {
			if seen[f.Name] {
				t.Errorf("%q is measured twice", f.Name)
			}
			seen[f.Name] = true
		}
	}
}

// TestVerdicts judges one row by what stands around it.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	r := row{what: "produce", figure: "p", client: true, disk: "d", atLeast: figures.AsMuch(2), reach: figures.AsMuch(3)}
	f := figures.More("p", "produce", "rec/s")
	for _, c := range []struct {
		name                       string
		ours, theirs, client, disk float64
		want                       string
	}{
		{"far ahead", 30, 10, 100, 0, "yes, and what to reach for"},
		{"ahead", 25, 10, 100, 0, "yes"},
		{"behind", 15, 10, 100, 0, "**no**"},
		{"behind, but the client can no more", 15, 10, 16, 0, "yes: 90 % of the client's ceiling"},
		{"nothing of theirs", 15, 0, 16, 0, "not measured"},
	} {
		got := figures.NewCollected()
		for s, v := range map[figures.Side]float64{ourSide: c.ours, kafkaSide: c.theirs, clientSide: c.client} {
			if v != 0 {
				found := figures.NewSheet()
				found.Values["p"] = v
				got.Add(s, []figures.Figure{f}, found, nil)
			}
		}
		if v := r.judge(got, f); v.said != c.want {
			t.Errorf("%s: %q, want %q", c.name, v.said, c.want)
		}
	}
}

// TestAFailureIsNamedInTheTable: rounds that failed are told beside those that did not.
func TestAFailureIsNamedInTheTable(t *testing.T) {
	t.Parallel()
	w := workload{name: "w", figures: []figures.Figure{figures.More("a", "figure a", "rec/s"), figures.Less("b", "figure b", "ms")}}
	tab := newTables([]workload{w}, []row{{what: "row a", sync: noSync, figure: "a", atLeast: figures.AsMuch(1)}})
	good := figures.NewSheet()
	good.Values["a"], good.Values["b"] = 200, 3
	half := figures.NewSheet()
	half.Values["a"] = 300
	tab.Add(ourSide, w.figures, good, nil)
	tab.Add(ourSide, w.figures, half, errors.New("torn | in two\nlines"))
	tab.Add(kafkaSide, w.figures, figures.NewSheet(), errors.New("never came back"))
	page := tab.page()
	for _, want := range []string{
		"| row a | – | 250 rec/s (200 … 300) | failed: never came back |  | 1x |  | not measured |",
		"| figure b ↓ | 3.00 ms; of 2 rounds, one failed: torn / in two lines | failed: never came back |",
		"0 of 1 rows reached.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}

// TestAWorkloadThatHangsIsLeft: neither one that heeds its context nor one that does not ends the run.
func TestAWorkloadThatHangsIsLeft(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errors.New("enough"))
	defer cancel()
	heeds := workload{run: func(ctx context.Context, e *env) error {
		e.put("a", 1)
		<-ctx.Done()
		return ctx.Err()
	}}
	found, err := heeds.do(ctx, env{})
	if err == nil || err.Error() != "enough" || found.Values["a"] != 1 {
		t.Errorf("a workload that heeds its context gave %v and %v", found.Values, err)
	}
	block := make(chan struct{})
	defer close(block)
	deaf := workload{grace: time.Millisecond, run: func(context.Context, *env) error { <-block; return nil }}
	if _, err := deaf.do(ctx, env{}); !errors.Is(err, errHangs) {
		t.Errorf("a workload that hangs gave %v", err)
	}
}

// TestCrowdCountsTheWindowOnly: what ends outside of it does not count, and a window has its length whatever happens.
func TestCrowdCountsTheWindowOnly(t *testing.T) {
	t.Parallel()
	e := &env{seconds: 50 * time.Millisecond}
	o, err := eachClient(t.Context(), e, 3, func(_ context.Context, _ int, once func(func() error) bool) error {
		for once(func() error { time.Sleep(time.Millisecond); return nil }) {
		}
		return nil
	})
	if err != nil || o.operations == 0 || o.operations > 150 || o.perSecond != o.operations/0.05 {
		t.Errorf("%v operations, %v a second, %v", o.operations, o.perSecond, err)
	}
	broken := errors.New("broken")
	_, err = eachClient(t.Context(), e, 3, func(ctx context.Context, i int, once func(func() error) bool) error {
		if i == 1 {
			return broken
		}
		for once(ctx.Err) {
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("a client that fails gives %v", err)
	}
}
