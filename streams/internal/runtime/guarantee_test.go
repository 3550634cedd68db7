package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// drain runs the job in peace until everything that was sent is processed.
func (j *job) drain(o runtime.Options) {
	j.t.Helper()
	r, err := runtime.Start(j.ctx, j.topology(), j.cluster, o)
	if err == nil {
		err = r.Drain(j.ctx)
	}
	if err != nil {
		j.t.Fatal(err)
	}
}

// counted is the highest count of each word in the output, and how many results came.
func (j *job) counted() (highest map[string]int, results int) {
	j.t.Helper()
	highest = map[string]int{}
	for _, rs := range j.read(j.out, nil) {
		for _, r := range rs {
			_, count, _ := strings.Cut(string(r.Value), " ")
			n, err := strconv.Atoi(count)
			if err != nil {
				j.t.Fatal(err)
			}
			highest[string(r.Key)] = max(highest[string(r.Key)], n)
			results++
		}
	}
	return highest, results
}

// crashes runs the job on a folder until it has crashed before a step, three times.
func (j *job) crashes(mode session.Mode, step session.Step, dir string) {
	j.t.Helper()
	for round := range 3 {
		o := j.options(dir)
		o.Guarantee = mode
		var n atomic.Int64
		at := int64(1 + round*2)
		o.OnStep = func(_ int, s session.Step) error {
			if s == step && n.Add(1) == at {
				return errTestCrash
			}
			return nil
		}
		r := j.start(o)
		if err := j.feedUntilEnd(r); !errors.Is(err, errTestCrash) {
			j.t.Fatalf("round %d: %v", round, err)
		}
		j.checkStores(dir)
	}
}

var looseSteps = []session.Step{
	runtime.StepLog, session.StepFlush, session.StepOffsets, session.StepDone, runtime.StepStore, runtime.StepStored,
}

// Without transactions, at least once: whatever step of a commit a crash comes
// before, each event is counted, and stores are the fold of their changelogs. Between
// output and offsets a crash makes events count twice, and that shows.
func TestAtLeastOnceCrashLosesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range looseSteps {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 2*time.Minute)
			dir := t.TempDir()
			j.label()
			j.crashes(session.AtLeastOnce, step, dir)
			o := j.options(dir)
			o.Guarantee = session.AtLeastOnce
			j.drain(o)
			j.checkStores(dir)
			got, results := j.counted()
			for w, n := range j.want {
				if got[w] < n {
					t.Errorf("%s was counted to %d, %d events were sent", w, got[w], n)
				}
			}
			if results < j.sent {
				t.Errorf("%d results of %d events", results, j.sent)
			}
			t.Logf("%d events, %d results", j.sent, results)
			if step == session.StepOffsets && results == j.sent {
				t.Error("a crash between output and offsets left no trace: the test shows nothing")
			}
		})
	}
}

// Without transactions, at most once: whatever step a crash comes before, no event
// counts twice. Between offsets and output a crash loses events, and that shows.
func TestAtMostOnceCrashDoublesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range looseSteps {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 2*time.Minute)
			dir := t.TempDir()
			j.label()
			j.crashes(session.AtMostOnce, step, dir)
			o := j.options(dir)
			o.Guarantee = session.AtMostOnce
			j.drain(o)
			j.checkStores(dir)
			got, results := j.counted()
			for w, n := range got {
				if n > j.want[w] {
					t.Errorf("%s was counted to %d, %d events were sent", w, n, j.want[w])
				}
			}
			if results > j.sent {
				t.Errorf("%d results of %d events", results, j.sent)
			}
			t.Logf("%d events, %d results", j.sent, results)
			if step == session.StepFlush && results == j.sent {
				t.Error("a crash between offsets and output left no trace: the test shows nothing")
			}
		})
	}
}

// Without a crash each mode counts exactly, with a rebalance in the middle, and over a
// change of the mode.
func TestModesCountAlikeInPeace(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	j.label()
	for _, mode := range []session.Mode{session.AtLeastOnce, session.AtMostOnce, session.ExactlyOnce, session.AtLeastOnce} {
		o := j.options(dir)
		o.Guarantee = mode
		j.send(300)
		r, err := runtime.Start(j.ctx, j.topology(), j.cluster, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.AddWorker(); err != nil {
			t.Fatal(err)
		}
		j.send(300)
		if err := r.Drain(j.ctx); err != nil {
			t.Fatal(err)
		}
		j.check()
		j.checkStores(dir)
	}
}

// TestPitfall24: a store that knows of a record whose output was lost makes a task
// that sends each record once keep silent about it for ever (KAFKA-12508). At least
// once, the output of a record is acknowledged before its trace in a changelog is.
func TestPitfall24OutputBeforeChangelog(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	var rs []*kgo.Record
	for i := range 40 {
		rs = append(rs, &kgo.Record{Topic: j.events, Partition: int32(i % partitions), Value: []byte(strconv.Itoa(i))})
	}
	j.produce(rs)
	o := j.options(t.TempDir())
	o.Guarantee = session.AtLeastOnce
	if err := runtime.Run(j.ctx, j.distinct(true), j.cluster, o); !errors.Is(err, kerr.MessageTooLarge) {
		t.Fatalf("a record that is too large ended the run with %v", err)
	}
	r, err := runtime.Start(j.ctx, j.distinct(false), j.cluster, o)
	if err == nil {
		err = r.Drain(j.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, rs := range j.read(j.out, nil) {
		for _, r := range rs {
			got[string(r.Value)] = true
		}
	}
	for i := range 40 {
		if !got[strconv.Itoa(i)] {
			t.Errorf("record %d never came out", i)
		}
	}
}

// A crash in the very first commit, when changelogs are written and offsets are not:
// the next start does not take that for lost offsets.
func TestAtLeastOnceCrashInTheFirstCommit(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.produce([]*kgo.Record{{Topic: j.events, Value: []byte("v")}})
	o := j.options(t.TempDir())
	o.Guarantee = session.AtLeastOnce
	crash := o
	crash.OnStep = func(_ int, s session.Step) error {
		if s == session.StepOffsets {
			return errTestCrash
		}
		return nil
	}
	if err := runtime.Run(j.ctx, j.distinct(false), j.cluster, crash); !errors.Is(err, errTestCrash) {
		t.Fatal(err)
	}
	r, err := runtime.Start(j.ctx, j.distinct(false), j.cluster, o)
	if err == nil {
		err = r.Drain(j.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := j.results(); n != 1 {
		t.Errorf("%d results: the first was acknowledged, and its store says so", n)
	}
}

// distinct is an application that sends each value of the events once.
func (j *job) distinct(spoil bool) *topology.Topology {
	topic := topology.InternalName(j.app, "seen", topology.Changelog)
	return &topology.Topology{AppID: j.app, Internal: []topology.InternalTopic{topology.NewInternal(j.app, "seen", topology.Changelog, "distinct")}, Subs: []topology.Sub{{
		Name: "distinct", Sources: []topology.Source{{Topic: j.events}}, Sinks: []string{j.out},
		Stores: []topology.Store{{Name: "seen", Changelog: topic}},
		New: func(e task.Env) (task.Task, error) {
			seen, err := e.Store("seen")
			return &once{env: e, seen: seen, to: j.out, spoil: spoil}, err
		},
	}}}
}

// once sends each value once.
type once struct {
	clockTask
	env   task.Env
	seen  state.Store
	to    string
	spoil bool // send what no broker takes
}

func (t *once) Process(r *task.Record) error {
	if _, ok, err := t.seen.Get(r.Value); ok || err != nil {
		return err
	}
	if err := t.seen.Put(r.Value, []byte("seen")); err != nil {
		return err
	}
	out := task.Out{Topic: t.to, Partition: r.Partition, TimeMs: r.TimeMs, Value: r.Value}
	if t.spoil {
		out.Value = bytes.Repeat([]byte("x"), 3<<20)
	}
	return t.env.Emit(&out)
}

func TestGuaranteeIsChecked(t *testing.T) {
	t.Parallel()
	if err := runtime.Run(context.Background(), &topology.Topology{AppID: "x"}, tcp{"x"}, runtime.Options{Guarantee: 5}); err == nil || !strings.Contains(err.Error(), "Guarantee") {
		t.Errorf("%v", err)
	}
}
