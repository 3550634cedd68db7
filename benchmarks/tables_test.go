package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
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
		if f, _ := named(all, r.figure); r.atLeast.isNumber() && f.less != r.atLeast.lessIsBetter() {
			t.Errorf("row %q asks for %v of a figure where less is better: %v", r.what, r.atLeast, f.less)
		}
		if r.reach.isNumber() && !r.atLeast.reached(r.reach.ratio) {
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
			if seen[f.name] {
				t.Errorf("%q is measured twice", f.name)
			}
			seen[f.name] = true
		}
	}
}

func TestGoals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		g       goal
		ratio   float64
		reached bool
		reads   string
	}{
		{asMuch(1.2), 1.2, true, "1.2x"}, {asMuch(1.2), 1.19, false, "1.2x"},
		{atMost(0.5), 0.5, true, "0.5x"}, {atMost(0.5), 0.51, false, "0.51x"},
		{fasterBy(50), 1.0 / 92, true, "92x faster"}, {fasterBy(50), 1.0 / 49, false, "49x faster"}, {fasterBy(1), 2, false, "0.5x faster"},
		{oneIn(10), 1.0 / 28, true, "1/28"}, {oneIn(10), 1.0 / 9, false, "1/9"},
	} {
		if got := c.g.reached(c.ratio); got != c.reached {
			t.Errorf("%v, ratio %v: reached is %v", c.g, c.ratio, got)
		}
		if got := c.g.reads.format(c.ratio); got != c.reads {
			t.Errorf("%v, ratio %v reads %q, want %q", c.g, c.ratio, got, c.reads)
		}
	}
}

// TestVerdicts judges one row by what stands around it.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	r := row{what: "produce", figure: "p", client: true, disk: "d", atLeast: asMuch(2), reach: asMuch(3)}
	f := more("p", "produce", "rec/s")
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
		got := newCollected()
		for s, v := range map[side]float64{ourSide: c.ours, kafkaSide: c.theirs, clientSide: c.client} {
			if v != 0 {
				got.values[s]["p"] = []float64{v}
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
	w := workload{name: "w", figures: []figure{more("a", "figure a", "rec/s"), less("b", "figure b", "ms")}}
	tab := newTables([]workload{w}, []row{{what: "row a", sync: noSync, figure: "a", atLeast: asMuch(1)}})
	good := newSheet()
	good.values["a"], good.values["b"] = 200, 3
	half := newSheet()
	half.values["a"] = 300
	tab.add(ourSide, w, good, nil)
	tab.add(ourSide, w, half, errors.New("torn | in two\nlines"))
	tab.add(kafkaSide, w, newSheet(), errors.New("never came back"))
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
	if err == nil || err.Error() != "enough" || found.values["a"] != 1 {
		t.Errorf("a workload that heeds its context gave %v and %v", found.values, err)
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

func TestFormat(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"1.25M rec/s": format(1_250_000, "rec/s"), "12,345 acks/s": format(12_345, "acks/s"), "456 MB": format(456.4, "MB"),
		"12.3 ms": format(12.34, "ms"), "0.27 µs": format(0.271, "µs"), "0.0513 µs": format(0.05134, "µs"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if s := spreadOf([]float64{3, 1, 2, 10}); s.low != 1 || s.median != 2.5 || s.high != 10 {
		t.Errorf("%+v", s)
	}
}
