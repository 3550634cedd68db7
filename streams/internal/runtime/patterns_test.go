package runtime_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
)

// matching is an application that reads topics by pattern.
type matching struct {
	*job
	topics *kadm.Client
	n      int
}

func newMatching(t *testing.T) *matching {
	t.Parallel()
	j := newJob(t, time.Minute)
	return &matching{job: j, topics: kadm.NewClient(j.admin)}
}

func (m *matching) topic(name string) string { return m.app + "-in-" + name }

func (m *matching) reading(stateful bool) *topology.Topology {
	app := m.distinct(false)
	re := regexp.MustCompile("^(?:" + regexp.QuoteMeta(m.app+"-in-") + ".*)$")
	app.Subs[0].Sources = []topology.Source{{Topic: topology.PatternTopic(re), Pattern: re}}
	if !stateful {
		app.Subs[0].Stores, app.Internal = nil, nil
		app.Subs[0].New = func(e task.Env) (task.Task, error) { return &forward{env: e, to: m.out}, nil }
	}
	return app
}

// forward sends what it gets.
type forward struct {
	clockTask
	env task.Env
	to  string
}

func (f *forward) Process(r *task.Record) error {
	return f.env.Emit(&task.Out{Topic: f.to, Partition: r.Partition, TimeMs: r.TimeMs, Value: r.Value})
}

// fill writes a record into each partition of a topic, making it if need be.
func (m *matching) fill(name string, count int32) {
	m.t.Helper()
	if _, err := m.topics.CreateTopic(m.ctx, count, 1, nil, m.topic(name)); err != nil && !strings.Contains(err.Error(), "EXISTS") {
		m.t.Fatal(err)
	}
	var rs []*kgo.Record
	for p := range count {
		m.n++
		rs = append(rs, &kgo.Record{Topic: m.topic(name), Partition: p, Value: fmt.Appendf(nil, "%s/%d %d", name, p, m.n)})
	}
	m.produce(rs)
}

func (m *matching) awaitResults(r *runtime.Job, want int) {
	m.t.Helper()
	m.sent = want
	m.counts(r)
}

// Topics that match are read, those that come are taken in and those that go let go of
// while the job runs, with two processes, and nothing is lost or doubled.
func TestTopicsByPattern(t *testing.T) {
	m := newMatching(t)
	o := m.options(t.TempDir())
	o.LookForTopics = 50 * time.Millisecond
	if err := runtime.Run(m.ctx, m.reading(false), m.cluster, o); err == nil || !strings.Contains(err.Error(), "no topic matches") {
		t.Fatalf("without a topic: %v", err)
	}
	m.fill("a", 2)
	r, err := runtime.Start(m.ctx, m.reading(false), m.cluster, o)
	m.must(err)
	m.awaitResults(r, 2)
	o.StateDir = t.TempDir()
	other, err := runtime.Start(m.ctx, m.reading(false), m.cluster, o)
	m.must(err)
	m.fill("b", 4) // more tasks than before
	m.fill("a", 2)
	m.awaitResults(r, 8)
	if _, err := m.topics.DeleteTopics(m.ctx, m.topic("a")); err != nil {
		t.Fatal(err)
	}
	m.fill("c", 1)
	m.fill("b", 4)
	m.awaitResults(r, 13)
	m.must(other.Close(m.ctx, runtime.LeaveGroup))
	m.fill("d", 3)
	m.awaitResults(r, 16)
	m.must(r.Close(m.ctx, runtime.AsOptions))
	seen := map[string]bool{}
	for _, rs := range m.read(m.out, nil) {
		for _, rec := range rs {
			if seen[string(rec.Value)] {
				t.Errorf("%s came twice", rec.Value)
			}
			seen[string(rec.Value)] = true
		}
	}
	if len(seen) != 16 {
		t.Errorf("%d results", len(seen))
	}
}

// Where a changelog fixes the number of tasks, a topic with more partitions is left
// out and the job goes on; one with fewer is taken in.
func TestTopicsByPatternWithState(t *testing.T) {
	m := newMatching(t)
	o := m.options(t.TempDir())
	o.LookForTopics = 50 * time.Millisecond
	m.fill("a", 2)
	r, err := runtime.Start(m.ctx, m.reading(true), m.cluster, o)
	m.must(err)
	m.awaitResults(r, 2)
	m.fill("wide", 4)
	m.fill("b", 1)
	m.awaitResults(r, 3)
	m.fill("a", 2)
	m.awaitResults(r, 5)
	m.must(r.Close(m.ctx, runtime.AsOptions))
	var values []string
	for _, rs := range m.read(m.out, nil) {
		for _, rec := range rs {
			values = append(values, string(rec.Value))
		}
	}
	if slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "wide") }) {
		t.Errorf("results %v have some of the topic that does not fit", values)
	}
}
