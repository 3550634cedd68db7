package conntest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
)

// logCases are about what happens to the cluster's side: the group's offsets,
// the topic, the log of claims.
func logCases() []testCase {
	return []testCase{
		{name: "run/group-offsets/behind", run: func(e *env) error { return runGroupOffsets(e, "behind") }},
		{name: "run/group-offsets/ahead", run: func(e *env) error { return runGroupOffsets(e, "ahead") }},
		{name: "run/group-offsets/deleted", run: func(e *env) error { return runGroupOffsets(e, "deleted") }},
		{name: "run/topic-recreated", run: runRecreated},
		{name: "run/topic-recreated-while-running", run: runRecreatedRunning},
		{name: "run/retention-overtook", run: runRetention},
		{name: "run/log-truncated", run: runTruncated},
		{name: "run/claims-lost", run: runClaimsLost},
	}
}

// half runs the connector over 60 records and stops it.
func half(e *env, change ...func(*runner.SinkOptions)) (*world, error) {
	w, err := newWorld(e)
	if err != nil {
		return nil, err
	}
	if err := w.produce(60); err != nil {
		return nil, err
	}
	p, err := w.start(nil, change...)
	if err != nil {
		return nil, err
	}
	if err := w.caughtUp(p); err != nil {
		return nil, err
	}
	return w, p.halt()
}

// runGroupOffsets: the group's offsets decide nothing.
func runGroupOffsets(e *env, how string) error {
	dynamic := func(o *runner.SinkOptions) { o.Instance = "" } // offsets of an empty group may be changed
	w, err := half(e, dynamic)
	if err != nil {
		return err
	}
	group := "conntest-" + w.id
	ends, err := w.ends()
	if err != nil {
		return err
	}
	if err := w.produce(60); err != nil {
		return err
	}
	other := dynamic
	if how == "deleted" {
		if ok, err := w.deleteGroup(group); err != nil {
			return fmt.Errorf("delete group: %w", err)
		} else if !ok { // to a sink, a group that never was is the same
			other = func(o *runner.SinkOptions) { o.Instance, o.Group = "", group+"-other" }
		}
	} else {
		var offsets kadm.Offsets = map[string]map[int32]kadm.Offset{}
		for tp, end := range ends {
			at := end - 5
			if how == "ahead" {
				at = end + 5
			}
			offsets.AddOffset(tp.Topic, tp.Partition, at, -1)
		}
		if err := w.admin.CommitAllOffsets(w.ctx, group, offsets); err != nil {
			return fmt.Errorf("change the group's offsets: %w", err)
		}
	}
	p, err := w.start(nil, other)
	if err != nil {
		return err
	}
	if err := w.caughtUp(p); err != nil {
		return err
	}
	return w.exact()
}

// deleteGroup deletes a group; false when the cluster offers no such request.
func (w *world) deleteGroup(group string) (bool, error) {
	versions, err := w.admin.ApiVersions(w.ctx)
	if err != nil {
		return false, err
	}
	offered := false
	versions.Each(func(v kadm.BrokerApiVersions) {
		_, _, offered = v.KeyVersions(int16(kmsg.DeleteGroups))
	})
	if !offered {
		return false, nil
	}
	_, err = w.admin.DeleteGroup(w.ctx, group)
	return true, err
}

// endsWith checks why a connector has stopped, and that the store is untouched.
func (w *world) endsWith(p *process, class error) error {
	if err := p.end(); !errors.Is(err, class) {
		return fmt.Errorf("end of Run: got error %v, want one that matches: %w", err, class)
	}
	st := p.run.Status()
	if st.State != runner.Failed || !strings.Contains(st.Tasks[0].Err, w.topic) {
		return fmt.Errorf("status %s %q; want %s and the topic's name", st.State, st.Tasks[0].Err, runner.Failed)
	}
	return w.exact()
}

func runRecreated(e *env) error {
	w, err := half(e)
	if err != nil {
		return err
	}
	before := w.want
	if err := w.recreateTopic(); err != nil {
		return err
	}
	if err := w.produce(100); err != nil {
		return err
	}
	w.want = before // of the other topic; nothing may be stored from the new one
	p, err := w.start(nil)
	if err != nil {
		return err
	}
	return w.endsWith(p, connectors.ErrTopicRecreated)
}

func runRecreatedRunning(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(60); err != nil {
		return err
	}
	p, err := w.start(nil)
	if err != nil {
		return err
	}
	if err := w.caughtUp(p); err != nil {
		return err
	}
	before := w.want
	if err := w.recreateTopic(); err != nil {
		return err
	}
	if err := w.produce(100); err != nil {
		return err
	}
	w.want = before
	return w.endsWith(p, connectors.ErrTopicRecreated)
}

func runRetention(e *env) error {
	w, err := half(e)
	if err != nil {
		return err
	}
	before := w.want
	if err := w.produce(60); err != nil {
		return err
	}
	w.want = before
	ends, err := w.ends()
	if err != nil {
		return err
	}
	var cut kadm.Offsets = map[string]map[int32]kadm.Offset{}
	for tp, end := range ends {
		cut.AddOffset(tp.Topic, tp.Partition, end, -1)
	}
	res, err := w.admin.DeleteRecords(w.ctx, cut)
	if err == nil {
		err = res.Error()
	}
	if err != nil {
		return fmt.Errorf("delete records: %w", err)
	}
	p, err := w.start(nil)
	if err != nil {
		return err
	}
	return w.endsWith(p, connectors.ErrPositionLost)
}

// runTruncated: the store is ahead of a log that has lost its tail.
func runTruncated(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(20); err != nil {
		return err
	}
	w.want = nil // nothing may be stored
	s, err := e.client()
	if err != nil {
		return err
	}
	if err := s.Prepare(e.ctx); err != nil {
		return err
	}
	topics, err := w.admin.ListTopics(e.ctx, w.topic)
	if err != nil {
		return err
	}
	tp := connectors.TP{Topic: w.topic, Partition: 1}
	a := connectors.Assignment{TP: tp, Fence: connectors.Fence{Epoch: 0, Owner: "the-past"}}
	at, err := s.Open(e.ctx, []connectors.Assignment{a})
	if err != nil {
		return err
	}
	to := connectors.Position{TopicID: connectors.TopicID(topics[w.topic].ID), Next: 1_000_000, LeaderEpoch: -1, Seq: at[0].Seq + 1}
	b := &connectors.Batch{Ranges: []connectors.Range{{TP: tp, Fence: a.Fence, From: at[0], To: to}}}
	if err := s.Commit(e.ctx, b); err != nil {
		return err
	}
	p, err := w.start(nil)
	if err != nil {
		return err
	}
	return w.endsWith(p, connectors.ErrLogTruncated)
}

// runClaimsLost: the topic of claims is gone, so that new claims get lower
// offsets than the store has seen.
func runClaimsLost(e *env) error {
	var topic string
	own := func(o *runner.SinkOptions) {
		topic = "claims-" + strings.TrimPrefix(o.Group, "conntest-")
		o.ClaimTopic = topic
	}
	w, err := half(e, own)
	if err != nil {
		return err
	}
	for range 3 { // some more epochs
		p, err := w.start(nil, own)
		if err != nil {
			return err
		}
		if err := w.caughtUp(p); err != nil {
			return err
		}
		if err := p.halt(); err != nil {
			return err
		}
	}
	if _, err := w.admin.DeleteTopic(e.ctx, topic); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	if err := w.produce(60); err != nil {
		return err
	}
	p, err := w.start(nil, own)
	if err != nil {
		return err
	}
	if err := w.caughtUp(p); err != nil {
		return err
	}
	return w.exact()
}
