package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/millrace/millrace/connectors"
)

// openWaiting takes over the assigned partitions that are not open. A failure
// that may pass is tried again by a later round, so that partitions that are
// open go on.
func (t *task) openWaiting(ctx, work context.Context) error {
	var wait []*part
	for _, tp := range slices.SortedFunc(maps.Keys(t.parts), compareTP) {
		if p := t.parts[tp]; !p.open && !p.fenced {
			wait = append(wait, p)
		}
	}
	if len(wait) == 0 || time.Now().Before(t.nextOpen) {
		return nil
	}
	err := t.takeOver(ctx, work, wait)
	if err == nil {
		err = t.begin(ctx, work, wait)
	}
	switch {
	case err == nil:
		t.openFails = 0
		t.well()
		return nil
	case errors.Is(err, errLetGo):
		return nil
	case final(err):
		return err
	}
	t.retrying(err)
	d := min(t.o.RetryMin<<min(t.openFails, 20), t.o.RetryMax)
	t.openFails++
	t.nextOpen = time.Now().Add(d)
	return nil
}

// takeOver claims and opens partitions once more, until the store has confirmed
// the fence. It sets fence and position of each.
//
// The epoch is the claim's offset. If the store refuses it, the claim is made
// again; an offset that is still not above an epoch seen in the store BEFORE that
// claim was made proves that the log of claims lost records or was made anew, and
// then the epoch is one above the store's.
func (t *task) takeOver(ctx, work context.Context, ps []*part) error {
	tps := make([]connectors.TP, len(ps))
	for i, p := range ps {
		tps[i] = p.tp
	}
	seen := int64(-1) // highest epoch seen in the store before the next claim
	for attempt := 0; ; attempt++ {
		fence, err := t.claims.claim(work, fmt.Sprintf("%s-%d", t.o.Group, t.id), tps)
		if err != nil {
			return err
		}
		if fence.Epoch <= seen {
			t.log.Warn("the log of claims is behind the store; continuing above the store's epoch", "claim", fence.Epoch, "stored", seen)
			fence.Epoch = seen + 1
		}
		err = t.open(work, ps, fence)
		if err == nil {
			t.counts.Opens++
			return nil
		}
		if !errors.Is(err, connectors.ErrFenced) {
			return err
		}
		t.counts.Fenced++
		if fe, ok := errors.AsType[*connectors.FencedError](err); ok {
			seen = max(seen, fe.Stored.Epoch)
		}
		if err := t.stillOwner(ctx, work, ps); err != nil {
			return err
		}
		if attempt > 0 {
			if err := t.backoff(ctx, attempt); err != nil {
				return err
			}
		}
	}
}

// open makes the sink's call and takes its answer.
func (t *task) open(work context.Context, ps []*part, fence connectors.Fence) error {
	as := make([]connectors.Assignment, len(ps))
	for i, p := range ps {
		as[i] = connectors.Assignment{TP: p.tp, Fence: fence}
	}
	var at []connectors.Position
	err := t.call(work, "Open", func(ctx context.Context) (err error) {
		at, err = t.sink.Open(ctx, as)
		return err
	})
	if err != nil {
		return err
	}
	if len(at) != len(ps) {
		return fmt.Errorf("%w: Open returned %d positions for %d partitions", connectors.ErrConfig, len(at), len(ps))
	}
	for i, p := range ps {
		p.fence, p.position = fence, at[i]
	}
	return nil
}

// stillOwner asks whether the partitions are still ours, for as long as it
// takes to get an answer. If they are not, they are let go quietly.
func (t *task) stillOwner(ctx, work context.Context, ps []*part) error {
	for attempt := 0; ; attempt++ {
		if t.box.any() {
			return errInterrupted // the answer is in the mailbox
		}
		in, err := t.member.stillIn(work)
		switch {
		case err == nil && in:
			return nil
		case err == nil:
			t.log.Info("fenced, and no longer a member of the group: letting go")
			var tps []connectors.TP
			for _, p := range ps {
				p.open, p.fenced = false, true
				tps = append(tps, p.tp)
			}
			t.stopReading(tps)
			t.show()
			return errLetGo
		}
		t.retrying(err)
		if err := t.backoff(ctx, attempt); err != nil {
			return err
		}
	}
}

// begin checks freshly opened partitions against the log and starts reading.
func (t *task) begin(ctx, work context.Context, ps []*part) error {
	bounds, err := t.bounds(work, ps)
	if err != nil {
		return err
	}
	for _, p := range ps {
		b := bounds[p.tp]
		if err := b.check(p); err != nil {
			return err
		}
		p.topicID, p.logEnd = b.id, b.end
	}
	if err := t.firstPositions(work, ps, bounds); err != nil {
		return err
	}
	for _, p := range ps {
		p.open, p.checked = true, false
	}
	t.seek(ps)
	return nil
}

// bound is what the cluster says about a partition.
type bound struct {
	id         connectors.TopicID
	start, end int64 // end for the isolation level read with
	hw         int64
}

func (t *task) bounds(ctx context.Context, ps []*part) (map[connectors.TP]bound, error) {
	topics := topicsOf(ps)
	known, err := describe(ctx, t.claims.client, topics)
	if err != nil {
		return nil, err
	}
	starts, err := t.claims.admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("log start: %w", err)
	}
	ends, err := t.claims.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("log end: %w", err)
	}
	stable := ends
	if t.o.Isolation == connectors.ReadCommitted {
		if stable, err = t.claims.admin.ListCommittedOffsets(ctx, topics...); err != nil {
			return nil, fmt.Errorf("last stable offset: %w", err)
		}
	}
	out := make(map[connectors.TP]bound, len(ps))
	for _, p := range ps {
		if err := known[p.tp.Topic].err; err != nil {
			return nil, fmt.Errorf("topic %s: %w", p.tp.Topic, err)
		}
		b := bound{id: known[p.tp.Topic].id}
		for _, want := range []struct {
			from kadm.ListedOffsets
			to   *int64
		}{{starts, &b.start}, {ends, &b.hw}, {stable, &b.end}} {
			l, ok := want.from.Lookup(p.tp.Topic, p.tp.Partition)
			if !ok {
				return nil, fmt.Errorf("%s: the cluster does not know this partition", p.tp)
			}
			if l.Err != nil {
				return nil, fmt.Errorf("%s: bounds of the log: %w", p.tp, l.Err)
			}
			*want.to = l.Offset
		}
		out[p.tp] = b
	}
	return out, nil
}

func topicsOf(ps []*part) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.tp.Topic)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// check compares a stored position with the log it should belong to.
func (b bound) check(p *part) error {
	at := p.position
	if at.None() {
		return nil
	}
	var none connectors.TopicID
	if at.TopicID != none && b.id != none && at.TopicID != b.id {
		return fmt.Errorf("%w: %s: the stored position %d belongs to topic id %s, the cluster has topic id %s; "+
			"to start with the new topic, reset the stored position", connectors.ErrTopicRecreated, p.tp, at.Next, at.TopicID, b.id)
	}
	if at.Next < b.start {
		return fmt.Errorf("%w: %s: stored position %d, the log starts at %d: %d offsets were deleted before they were read; "+
			"to go on without them, reset the stored position", connectors.ErrPositionLost, p.tp, at.Next, b.start, b.start-at.Next)
	}
	if at.Next > b.hw {
		return fmt.Errorf("%w: %s: stored position %d, the log ends at %d: the log lost records that are in the store",
			connectors.ErrLogTruncated, p.tp, at.Next, b.hw)
	}
	return nil
}

// firstPositions settles where partitions without a stored position begin. With
// Latest that place is stored at once: a crash must not move it.
func (t *task) firstPositions(work context.Context, ps []*part, bounds map[connectors.TP]bound) error {
	b := &connectors.Batch{}
	for _, p := range ps {
		if !p.position.None() {
			continue
		}
		to := connectors.Position{TopicID: p.topicID, Next: bounds[p.tp].start, LeaderEpoch: -1, Seq: p.position.Seq + 1, Meta: p.position.Meta}
		if t.o.Start == Latest {
			to.Next = bounds[p.tp].end // what a transaction open now commits later is still to come
		}
		b.Ranges = append(b.Ranges, connectors.Range{TP: p.tp, Fence: p.fence, From: p.position, To: to})
	}
	if len(b.Ranges) == 0 {
		return nil
	}
	if err := t.call(work, "Commit", func(ctx context.Context) error { return t.sink.Commit(ctx, b) }); err != nil {
		return err // opened again by a later round
	}
	t.applied(b)
	return nil
}

// confirmTopics looks once more at the ids of topics that the reader has begun
// to deliver from: it settles on a topic id at its first look and never follows
// a recreation, so an unchanged id here means that the records belong to the
// topic that was checked.
func (t *task) confirmTopics(work context.Context) error {
	var fresh []*part
	for tp := range t.pend.to {
		if p := t.parts[tp]; p != nil && !p.checked {
			fresh = append(fresh, p)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	known, err := describe(work, t.claims.client, topicsOf(fresh))
	if err != nil {
		return err
	}
	for _, p := range fresh {
		if err := known[p.tp.Topic].err; err != nil {
			return fmt.Errorf("topic %s: %w", p.tp.Topic, err)
		}
		if id := known[p.tp.Topic].id; id != p.topicID {
			return fmt.Errorf("%w: %s: topic id was %s when the position was checked and is %s now",
				connectors.ErrTopicRecreated, p.tp, p.topicID, id)
		}
		p.checked = true
	}
	return nil
}
