package streamstest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/streams"
)

// EveryCrash runs a job on inputs without a crash, and then again and again, each
// time with a crash at another step: after each record that a task has processed,
// before each commit, and after it. It fails the test if the committed output of any
// run differs from that of the first in a topic, per key: records that are missing,
// that came twice, in another order, or with another time or header. What it finds
// are jobs that keep state outside of a store, or that depend on a clock, on the
// order of a map or on chance.
//
// job makes the application. It is called again at each crash, as the main function
// of a process that starts again would call it, so a variable of its body does not
// outlive a crash; one outside of it does, and then counts twice what is processed
// twice. inputs pipes records in and moves time; the same each time it is called. With
// [ManualCommit] a transaction is as long as inputs makes it; else it is one record's
// way to the next topic.
//
// Runs are as many as there are steps, about four for each record and hop, so a job
// with two hops and a hundred records takes some hundred thousand calls of its
// functions: keep inputs short. A timer by the wall clock made by Every starts anew with its
// task, so that what it writes follows from when the crash was: use Timers, which
// are kept in a store, for what must come out exactly.
func EveryCrash(t TB, job func() *streams.App, inputs func(*Driver), opts ...Option) {
	if t != nil {
		t.Helper()
	}
	r := replay{t: t, job: job, inputs: inputs, opts: opts}
	want := r.run(-1)
	steps := r.steps
	if diff := differ(want, r.run(-1)); diff != "" {
		r.fail("two runs without a crash differ: %s", diff)
		return
	}
	for at := range steps {
		if diff := differ(want, r.run(at)); diff != "" {
			r.fail("a crash at step %d of %d, once %s: %s", at+1, steps, r.crashed, diff)
			return
		}
	}
}

// replay is one run after the other of a job on the same inputs.
type replay struct {
	t      TB
	job    func() *streams.App
	inputs func(*Driver)
	opts   []Option

	steps   int    // of the last run
	crashed string // where the last run crashed
}

func (r *replay) fail(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if r.t == nil {
		panic(err)
	}
	r.t.Helper()
	r.t.Fatalf("streamstest: %v", err)
}

// lane is what goes out in order: the records of one key in one topic. Those without
// a key are one lane.
type lane struct {
	topic, key string
	keyed      bool
}

// run is the output of a run that crashes at a step, or at none.
func (r *replay) run(at int) map[lane][]Raw {
	if r.t != nil {
		r.t.Helper()
	}
	r.steps, r.crashed = 0, "nothing happened"
	d := New(r.t, r.job(), r.opts...)
	d.crash = func(step string) (*streams.App, bool) {
		r.steps++
		if r.steps-1 != at {
			return nil, false
		}
		r.crashed = step
		return r.job(), true
	}
	r.inputs(d)
	d.Settle()
	d.crash = nil
	d.check(d.restart()) // holds the stores against their changelogs
	out := map[lane][]Raw{}
	for _, x := range d.Written() {
		l := lane{x.Topic, string(x.Key), x.Key != nil}
		out[l] = append(out[l], x)
	}
	return out
}

// step is a place where a run may crash. It tells whether it did.
func (d *Driver) step(at string) (crashed bool, err error) {
	if d.crash == nil || d.err != nil {
		return false, nil
	}
	app, crashed := d.crash(at)
	if !crashed {
		return false, nil
	}
	top, err := app.Topology()
	if err != nil {
		return true, err
	}
	if now, was := app.Describe(), d.app.Describe(); now != was {
		return true, fmt.Errorf("the application is another one when it is made again:\n%s\nit was\n%s", now, was)
	}
	d.app = app
	next := map[string]int{}
	for i := range top.Subs {
		next[top.Subs[i].Name] = i
	}
	d.pending = nil
	for _, w := range d.workers {
		d.remember(w)
		if err := w.stop(); err != nil {
			return true, err
		}
		w.sub = &top.Subs[next[w.sub.Name]]
		if err := w.start(); err != nil {
			return true, err
		}
	}
	for _, w := range d.workers { // what time had made due is due again
		if w.task.NextTick() <= d.now.UnixMilli() {
			if err := w.task.Tick(d.now.UnixMilli()); err != nil {
				d.err = err
				return true, err
			}
		}
	}
	return true, nil
}

// differ says where two outputs differ first, in the order of topics and keys.
func differ(want, got map[lane][]Raw) string {
	lanes := map[lane]bool{}
	for l := range want {
		lanes[l] = true
	}
	for l := range got {
		lanes[l] = true
	}
	order := slices.SortedFunc(maps.Keys(lanes), func(a, b lane) int {
		return strings.Compare(a.topic+"\x00"+a.key, b.topic+"\x00"+b.key)
	})
	for _, l := range order {
		if !slices.EqualFunc(want[l], got[l], sameRecord) {
			return fmt.Sprintf("topic %s, key %q:\n got %s\nwant %s", l.topic, l.key, list(got[l]), list(want[l]))
		}
	}
	return ""
}

func sameRecord(a, b Raw) bool {
	return a.Time.Equal(b.Time) && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil) &&
		slices.EqualFunc(a.Headers, b.Headers, func(x, y streams.Header) bool { return x.Key == y.Key && bytes.Equal(x.Value, y.Value) })
}

func list(rs []Raw) string {
	var b strings.Builder
	for i, r := range rs {
		if i == 20 {
			fmt.Fprintf(&b, " and %d more", len(rs)-i)
			break
		}
		if r.Value == nil {
			fmt.Fprintf(&b, " null@%d", r.Time.UnixMilli())
		} else {
			fmt.Fprintf(&b, " %q@%d", r.Value, r.Time.UnixMilli())
		}
	}
	if len(rs) == 0 {
		return " nothing"
	}
	return b.String()
}
