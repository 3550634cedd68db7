package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/rig"
)

// TestRowsAreMeasured: every figure that a page speaks of is one that some work gives to that side, and no two give the
// same.
func TestRowsAreMeasured(t *testing.T) {
	t.Parallel()
	all := append(allWork(false), allWork(true)...)
	gives := map[figures.Side]map[string]bool{}
	seen := map[string]bool{}
	for _, w := range all {
		for _, f := range w.figures {
			if seen[f.Name] {
				t.Errorf("%q is measured twice", f.Name)
			}
			seen[f.Name] = true
			for _, s := range w.sides {
				if gives[s] == nil {
					gives[s] = map[string]bool{}
				}
				gives[s][f.Name] = true
			}
		}
	}
	for _, r := range append(askedOfNexmark(), asked...) {
		if !gives[r.side][r.figure] || !gives[r.than][r.other()] {
			t.Errorf("row %q: nothing measures %q of %s, or %q of %s", r.what, r.figure, r.side, r.other(), r.than)
		}
		if f, _ := figureNamed(all, r.figure); r.atLeast.IsNumber() && f.Less != r.atLeast.LessIsBetter() {
			t.Errorf("row %q asks for %v of a figure where less is better: %v", r.what, r.atLeast, f.Less)
		}
		if r.reach.IsNumber() && !r.atLeast.Reached(r.reach.Ratio) {
			t.Errorf("row %q reaches for less (%v) than it asks for (%v)", r.what, r.reach, r.atLeast)
		}
	}
}

// TestSpecTravels: what is written as arguments is read as it was.
func TestSpecTravels(t *testing.T) {
	t.Parallel()
	s := spec{engine: gokaEngine, job: "count", id: "count-1", brokers: "127.0.0.1:1", in: "in", out: "out", dir: "/tmp/a=b", total: 7, middle: 3,
		workers: 2, commit: 10 * time.Millisecond, cached: true, store: "pebble", settings: "a:b,c:d", profile: "p"}
	got, err := readSpec(s.args())
	if err != nil || got != s {
		t.Errorf("%+v came as %+v, %v", s, got, err)
	}
	for _, bad := range []string{"total=many", "color=red"} {
		if _, err := readSpec([]string{bad}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestMarks: a job tells its first, middle and last record and, in the end, how many there were; other output is kept for
// messages.
func TestMarks(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	out.WriteString("a line of a logger\n")
	said := &progress{middle: 2, total: 4, out: &out}
	for range 4 {
		said.seen()
	}
	said.line("processed %d", 4)
	p := &process{Vitals: rig.Vitals{PID: os.Getpid()}, broker: &rig.Process{}, marks: map[string]mark{}, heard: make(chan told, 16)}
	p.listen(&out)
	first, err := p.await(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	last, err := p.await(t.Context(), "last")
	if err != nil || last.at.Before(first.at) || first.at.IsZero() {
		t.Errorf("first at %v, last at %v, %v", first.at, last.at, err)
	}
	if _, err := p.await(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "a line of a logger") {
		t.Errorf("a mark that never comes: %v", err)
	}
	if p.many != 4 {
		t.Errorf("%d records are told, there were 4", p.many)
	}
}

// TestJobEndsWithItsInput: a job of an engine that is none of ours says so, and one whose starter has gone ends.
func TestJobEndsWithItsInput(t *testing.T) {
	t.Parallel()
	in, starter := io.Pipe()
	if err := starter.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := beJob(t.Context(), spec{engine: "other"}, in, &out); err == nil {
		t.Error("any engine will do")
	}
	s := spec{engine: millraceEngine, job: "count", id: "id", brokers: "127.0.0.1:1", in: "in", out: "out", dir: t.TempDir(), commit: time.Second}
	if err := beJob(t.Context(), s, in, &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "@ processed 0\n") {
		t.Errorf("the job said %q", out.String())
	}
}

// TestPage judges rows by medians and shows what failed.
func TestPage(t *testing.T) {
	t.Parallel()
	p := &page{Collected: figures.NewCollected(), head: "# Head\n", state: "complete", all: jobWork(), rows: asked[:1]}
	w := p.all[0]
	for _, v := range []float64{900_000, 1_000_000, 1_100_000} {
		s := figures.NewSheet()
		s.Values["map"] = v
		p.Add(ours, w.figures, s, nil)
	}
	if v := asked[0].judge(p.Collected); v.said != "not measured" {
		t.Errorf("without the other side: %+v", v)
	}
	theirs := figures.NewSheet()
	theirs.Values["map"] = 200_000
	p.Add(kstreams, w.figures, theirs, nil)
	p.Add(oursOnKafka, w.figures, figures.NewSheet(), errors.New("key 1 is counted twice"))
	for _, want := range []string{
		"| filter and map | Millrace | 1.00M rec/s (0.90M … 1.10M) | Kafka Streams on Kafka | 0.20M rec/s | 5x | 4x | 8x | yes |",
		"1 of 1 rows reached.",
		"| filter and map | 1.00M rec/s (0.90M … 1.10M) | failed: key 1 is counted twice | 0.20M rec/s | – |",
	} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, p)
		}
	}
}
