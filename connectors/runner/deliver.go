package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
)

// pollAtMost bounds one poll, so that MaxBytes is looked at often enough.
const pollAtMost = 1000

// poll waits for records until the batch is due, an event comes or something
// is to be opened, and adds what it got.
func (t *task) poll(ctx context.Context) error {
	wait := t.o.MirrorEvery
	if !t.pend.empty() {
		wait = time.Until(t.pend.since.Add(t.o.Linger))
	} else if !t.nextOpen.IsZero() {
		if d := time.Until(t.nextOpen); d > 0 {
			wait = min(wait, d)
		}
	}
	if t.due() || wait <= 0 {
		return nil
	}
	timed, cancelTimer := context.WithTimeout(ctx, wait)
	defer cancelTimer()
	pctx, cancel := t.box.interruptible(timed)
	defer cancel()
	room := t.o.MaxRecords - len(t.pend.records) - len(t.pend.rejects)
	fetches := t.reader.PollRecords(pctx, min(room, pollAtMost))
	var failure error
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		p := t.parts[connectors.TP{Topic: f.Topic, Partition: f.Partition}]
		if p == nil || !p.open {
			return // taken away meanwhile, or an error that belongs to no partition
		}
		if f.Err != nil && failure == nil {
			failure = t.fetchError(ctx, p, f.Err)
		}
		end := f.LastStableOffset
		if t.o.Isolation == connectors.ReadUncommitted || end < 0 {
			end = f.HighWatermark
		}
		if end >= 0 && f.Err == nil {
			p.logEnd = max(p.logEnd, end)
		}
		now := time.Now()
		for _, r := range f.Records {
			t.pend.add(r, t.o.Key, t.o.Value, now)
		}
	})
	return failure
}

// due reports whether the pending batch is to be committed now.
func (t *task) due() bool {
	p := &t.pend
	return !p.empty() && (len(p.records)+len(p.rejects) >= t.o.MaxRecords || p.bytes >= t.o.MaxBytes || time.Since(p.since) >= t.o.Linger)
}

// fetchError decides what an error of the reader means. nil: the reader goes
// on by itself.
func (t *task) fetchError(ctx context.Context, p *part, err error) error {
	if loss, ok := errors.AsType[*kgo.ErrDataLoss](err); ok {
		return fmt.Errorf("%w: %s: the log diverges from leader epoch %d at or below offset %d: %w",
			connectors.ErrLogTruncated, p.tp, loss.ConsumedToEpoch, loss.ConsumedTo, err)
	}
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		bounds, berr := t.bounds(ctx, []*part{p})
		if berr == nil {
			if cerr := bounds[p.tp].check(p); cerr != nil {
				return cerr
			}
		}
		if errors.Is(err, kerr.OffsetOutOfRange) && berr == nil {
			return fmt.Errorf("%w: %s: the log between the stored position %d and the reader was deleted: %w",
				connectors.ErrPositionLost, p.tp, p.position.Next, err)
		}
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("%w: %s: %w", connectors.ErrConfig, p.tp, err)
	}
	t.retrying(fmt.Errorf("%s: fetch: %w", p.tp, err))
	return nil
}

// lastFlush commits what is pending when the connector stops: one attempt.
func (t *task) lastFlush(ctx, work context.Context) error {
	if t.pend.empty() {
		return nil
	}
	if err := t.flush(ctx, work); err != nil && !errors.Is(err, errLetGo) {
		return err
	}
	return nil
}

// pendingBatch makes a commit of what is pending.
func (t *task) pendingBatch() *connectors.Batch {
	return t.pend.batch(func(tp connectors.TP) (connectors.TopicID, connectors.Fence, connectors.Position) {
		p := t.parts[tp]
		return p.topicID, p.fence, p.position
	})
}

// flush commits what is pending.
func (t *task) flush(ctx, work context.Context) error {
	if err := t.confirmTopics(work); err != nil {
		if final(err) {
			return err
		}
		t.retrying(err)
		return t.backoff(ctx, 0) // stays pending, comes again
	}
	b := t.pendingBatch()
	if err := t.mayReject(b); err != nil {
		return err
	}
	err := t.deliver(ctx, work, b)
	if errors.Is(err, errMoved) || errors.Is(err, errLetGo) {
		t.rewindAll()
		return nil
	}
	if err != nil {
		return err
	}
	t.pend.reset()
	t.well()
	return nil
}

// mayReject returns an error that names the first record of the batch that
// could not be decoded, if rejects are to stop the connector or the sink has no
// place for them.
func (t *task) mayReject(b *connectors.Batch) error {
	if len(b.Rejects) == 0 || !t.o.StopOnReject && t.spec.Rejects {
		return nil
	}
	r := &b.Rejects[0]
	return fmt.Errorf("%w: %w", connectors.ErrConfig,
		&RecordError{TP: r.Record.TP, Offset: r.Record.Offset, Reason: r.Reason, Err: errors.New(r.Err)})
}

// flushOnce makes a single attempt, for a revocation that others wait for.
func (t *task) flushOnce(work context.Context) error {
	if err := t.confirmTopics(work); err != nil {
		return err
	}
	b := t.pendingBatch()
	if err := t.mayReject(b); err != nil {
		return err
	}
	if err := t.call(work, "Commit", func(ctx context.Context) error { return t.sink.Commit(ctx, b) }); err != nil {
		return err
	}
	t.applied(b)
	t.pend.reset()
	return nil
}

// deliver makes b durable, whatever it takes: nil means that the store holds
// it. errMoved and errLetGo mean that this batch will not be applied by us.
func (t *task) deliver(ctx, work context.Context, b *connectors.Batch) error {
	began := time.Now()
	for attempt := 0; ; attempt++ {
		err := t.call(work, "Commit", func(ctx context.Context) error { return t.sink.Commit(ctx, b) })
		if err == nil {
			t.applied(b)
			return nil
		}
		if bad := connectors.Rejections(err); len(bad) > 0 {
			next, err := t.isolate(ctx, work, b, bad, err)
			if next == nil {
				return err
			}
			b = next
			continue
		}
		switch {
		case errors.Is(err, connectors.ErrConfig):
			return err
		case errors.Is(err, connectors.ErrFenced):
			return t.afterFence(ctx, work, b, err)
		}
		if t.o.GiveUpAfter > 0 && time.Since(began) > t.o.GiveUpAfter {
			return fmt.Errorf("%w: gave up after %v: %w", connectors.ErrConfig, t.o.GiveUpAfter, err)
		}
		t.retrying(err)
		if !errors.Is(err, connectors.ErrRetry) {
			done, err := t.recover(ctx, work, b)
			if err != nil || done {
				return err
			}
			if attempt == 0 {
				continue // not applied: the same batch, under the new fence
			}
		}
		if err := t.backoff(ctx, attempt); err != nil {
			return err
		}
	}
}

// recover finds out what became of a commit whose outcome is unknown: it takes
// over again, which also fences the old session of our own, and compares the
// positions. done: it was applied.
func (t *task) recover(ctx, work context.Context, b *connectors.Batch) (done bool, err error) {
	ps := t.partsOf(b)
	for attempt := 0; ; attempt++ {
		err := t.takeOver(ctx, work, ps)
		if err == nil {
			break
		}
		if final(err) || errors.Is(err, errLetGo) {
			return false, err
		}
		t.retrying(err)
		if err := t.backoff(ctx, attempt); err != nil {
			return false, err
		}
	}
	before, after := 0, 0
	for i, p := range ps {
		r := &b.Ranges[i]
		r.Fence = p.fence
		switch {
		case p.position.Seq == r.To.Seq && p.position.Next == r.To.Next:
			after++
		case p.position.Seq == r.From.Seq && p.position.Next == r.From.Next:
			before++
		}
	}
	switch len(ps) {
	case after:
		t.count(b)
		return true, nil
	case before:
		return false, nil
	}
	return false, errMoved
}

func (t *task) partsOf(b *connectors.Batch) []*part {
	ps := make([]*part, len(b.Ranges))
	for i := range b.Ranges {
		ps[i] = t.parts[b.Ranges[i].TP]
	}
	return ps
}

// afterFence asks who the owner is. If it is us, the partitions are marked to be
// opened again; what was read is dropped either way, as another owner may have
// gone on in between.
func (t *task) afterFence(ctx, work context.Context, b *connectors.Batch, fence error) error {
	t.counts.Fenced++
	t.log.Info("fenced", "err", fence)
	ps := t.partsOf(b)
	if err := t.stillOwner(ctx, work, ps); err != nil {
		return err
	}
	var tps []connectors.TP
	for _, p := range ps {
		p.open = false
		tps = append(tps, p.tp)
	}
	t.stopReading(tps)
	t.nextOpen = time.Time{}
	t.show()
	return errMoved
}

// isolate removes rejected records from a batch. It returns the batch to try
// next; nil when there is none, either with an error or because both halves of
// the batch were delivered.
func (t *task) isolate(ctx, work context.Context, b *connectors.Batch, bad []*connectors.RejectError, err error) (*connectors.Batch, error) {
	named := true
	for _, r := range bad {
		if r.Index >= len(b.Records) || r.Index < -1 {
			return nil, fmt.Errorf("%w: the sink rejected record %d of a batch of %d", connectors.ErrConfig, r.Index, len(b.Records))
		}
		named = named && r.Index >= 0
	}
	if !named && len(b.Records) == 1 {
		bad, named = []*connectors.RejectError{{Index: 0, Reason: bad[0].Reason, Err: bad[0].Err}}, true
	}
	if !named && len(b.Records) > 1 {
		first, second := halve(b)
		if err := t.deliver(ctx, work, first); err != nil {
			return nil, err
		}
		t.rebase(second)
		return nil, t.deliver(ctx, work, second)
	}
	if len(b.Records) == 0 {
		return nil, fmt.Errorf("%w: the sink rejected a batch without records: %w", connectors.ErrConfig, err)
	}
	if t.o.StopOnReject || !t.spec.Rejects {
		r := b.Records[bad[0].Index]
		return nil, fmt.Errorf("%w: %w", connectors.ErrConfig, &RecordError{TP: r.TP, Offset: r.Offset, Reason: bad[0].Reason, Err: bad[0].Err})
	}
	return without(b, bad), nil
}

// rebase gives a second half the fences that the first one ended with.
func (t *task) rebase(b *connectors.Batch) {
	for i := range b.Ranges {
		b.Ranges[i].Fence = t.parts[b.Ranges[i].TP].fence
	}
}

// applied takes over the positions of a batch that is durable.
func (t *task) applied(b *connectors.Batch) {
	for i := range b.Ranges {
		t.parts[b.Ranges[i].TP].position = b.Ranges[i].To
	}
	t.count(b)
}

func (t *task) count(b *connectors.Batch) {
	t.counts.Commits++
	t.counts.Records += int64(len(b.Records))
	t.counts.Rejects += int64(len(b.Rejects))
}

// mirror copies positions to the group's offsets and asks for the log's end,
// both at intervals and only to be shown.
func (t *task) mirror(work context.Context, last bool) {
	if !last && time.Since(t.lastMirror) < t.o.MirrorEvery {
		return
	}
	t.lastMirror = time.Now()
	at := map[connectors.TP]connectors.Position{}
	for tp, p := range t.parts {
		if p.open && !p.position.None() {
			at[tp] = p.position
		}
	}
	if len(at) > 0 {
		t.member.mirror(work, at, last)
	}
	t.show()
}
