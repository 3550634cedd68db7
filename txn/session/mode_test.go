package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/session"
)

var errStepCrash = errors.New("crash of the test")

// loose is a producer without transactions in its world.
type loose struct {
	*world
	cluster *session.Cluster
	topic   string
	group   string
	part    session.TopicPartition
}

func newLoose(t *testing.T) *loose {
	t.Parallel()
	w := newWorld(t)
	c, err := session.Connect(w.ctx, session.ClusterOptions{Seeds: w.seeds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	topic := w.topic("out", 1)
	return &loose{w, c, topic, unique(t, "group"), session.TopicPartition{Topic: topic}}
}

// run sends three records and commits offset 5, with a crash before a step ("" for none).
func (l *loose) run(mode session.Mode, crash session.Step) (steps []session.Step, err error) {
	l.t.Helper()
	p, err := l.cluster.NewProducer(l.ctx, session.ProducerOptions{Mode: mode, OnStep: func(s session.Step) error {
		if steps = append(steps, s); s == crash {
			return errStepCrash
		}
		return nil
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	defer p.Abandon()
	for i := range 3 {
		if err := p.Send(l.ctx, &session.Record{Topic: l.topic, Partition: session.ByKey, Key: []byte("k"), Value: fmt.Append(nil, i), Time: time.UnixMilli(1)}, nil); err != nil {
			l.t.Fatal(err)
		}
	}
	return steps, p.Commit(l.ctx, session.Offsets{l.part: {Next: 5, LeaderEpoch: -1}}, session.Generation{Group: l.group})
}

func (l *loose) check(what string, records int, offset int64) {
	l.t.Helper()
	at, err := l.cluster.CommittedOffsets(l.ctx, l.group, []session.TopicPartition{l.part})
	if err != nil {
		l.t.Fatal(err)
	}
	if n := l.visible(l.topic, 1); n != records || at[l.part].Next != offset {
		l.t.Errorf("%s: %d records and offset %d, want %d and %d", what, n, at[l.part].Next, records, offset)
	}
}

// The order of records and offsets is what the modes are about.
func TestModesWithoutTransactions(t *testing.T) {
	for _, c := range []struct {
		mode    session.Mode
		crash   session.Step
		records int
		offset  int64
		order   string
	}{
		{session.AtLeastOnce, "", 3, 5, "flush offsets done"},
		{session.AtLeastOnce, session.StepOffsets, 3, -1, "flush offsets"},
		{session.AtLeastOnce, session.StepDone, 3, 5, "flush offsets done"},
		{session.AtMostOnce, "", 3, 5, "offsets flush done"},
		{session.AtMostOnce, session.StepOffsets, 0, -1, "offsets"},
		{session.AtMostOnce, session.StepFlush, 0, 5, "offsets flush"},
		{session.AtMostOnce, session.StepDone, 3, 5, "offsets flush done"},
	} {
		t.Run(c.mode.String()+" "+string(c.crash), func(t *testing.T) {
			l := newLoose(t)
			steps, err := l.run(c.mode, c.crash)
			if errors.Is(err, errStepCrash) != (c.crash != "") {
				t.Errorf("commit: %v", err)
			}
			if got := strings.Trim(fmt.Sprint(steps), "[]"); got != c.order {
				t.Errorf("steps %s, want %s", got, c.order)
			}
			l.check("after the commit", c.records, c.offset)
		})
	}
}

// A member that the group has dropped sends nothing at most once: its offsets are
// refused first.
func TestAtMostOnceSendsNothingForAStaleGeneration(t *testing.T) {
	l := newLoose(t)
	p, err := l.cluster.NewProducer(l.ctx, session.ProducerOptions{Mode: session.AtMostOnce})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Abandon()
	if err := p.Commit(l.ctx, session.Offsets{l.part: {Next: 1}}, session.Generation{Group: l.group}); err != nil {
		t.Fatal(err) // which makes the group
	}
	r := &session.Record{Topic: l.topic, Value: []byte("v"), Time: time.UnixMilli(1)}
	if err := p.Send(l.ctx, r, nil); err != nil {
		t.Fatal(err)
	}
	if _, open := p.Deadline(); open || p.Sent() != 1 {
		t.Errorf("deadline %v, %d sent", open, p.Sent())
	}
	err = p.Commit(l.ctx, session.Offsets{l.part: {Next: 5}}, session.Generation{Group: l.group, Member: "nobody", ID: 7})
	if !errors.Is(err, session.ErrFenced) {
		t.Errorf("commit of a stranger: %v", err)
	}
	l.check("after the refusal", 0, 1)
	// The producer goes on, without what it held.
	var ack session.Ack
	if err := p.Send(l.ctx, r, &ack); err != nil {
		t.Fatal(err)
	}
	if err := p.Commit(l.ctx, session.Offsets{l.part: {Next: 6}}, session.Generation{Group: l.group}); err != nil {
		t.Fatal(err)
	}
	if l.check("after a good one", 1, 6); ack.Next() != 1 {
		t.Errorf("acknowledged up to %d, want 1", ack.Next())
	}
}

// At least once, an abort takes nothing back that has gone out, and what is sent
// afterwards comes after it.
func TestAtLeastOnceAbortKeepsTheOrder(t *testing.T) {
	l := newLoose(t)
	p, err := l.cluster.NewProducer(l.ctx, session.ProducerOptions{Mode: session.AtLeastOnce})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Abandon()
	for i := range 5 {
		if err := p.Send(l.ctx, &session.Record{Topic: l.topic, Value: fmt.Append(nil, i), Time: time.UnixMilli(1)}, nil); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			err = p.Abort(l.ctx)
		} else {
			err = p.Commit(l.ctx, nil, session.Generation{Group: l.group})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	last := ""
	for _, v := range l.committed(l.topic, 1) {
		if v <= last {
			t.Errorf("%s after %s", v, last)
		}
		last = v
	}
	if err := l.admin.ProduceSync(l.ctx, &kgo.Record{Topic: l.topic, Value: []byte("end")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func TestModeIsChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []session.ProducerOptions{{Mode: 7, TransactionalID: "x"}, {Mode: -1}, {}} {
		if err := o.Validate(); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if err := (session.ProducerOptions{Mode: session.AtLeastOnce}).Validate(); err != nil {
		t.Error(err)
	}
	if s := session.Mode(9).String(); s != "mode 9" {
		t.Error(s)
	}
}
