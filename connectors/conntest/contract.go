package conntest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/millrace/millrace/connectors"
)

// contractCases need neither a crash nor a second writer in the middle of a
// call.
func contractCases() []testCase {
	return []testCase{
		{name: "contract/spec", run: caseSpec},
		{name: "contract/positions-round-trip", run: caseRoundTrip},
		{name: "contract/open/repeat", run: caseOpenRepeat},
		{name: "contract/open/lower-epoch", run: caseOpenLower},
		{name: "contract/open/same-epoch-other-owner", run: caseOpenSameEpoch},
		{name: "contract/open/all-or-none", run: caseOpenAtomic},
		{name: "contract/fenced-commit", run: caseFencedCommit},
		{name: "contract/same-epoch-other-owner-commit", run: caseSameEpochCommit},
		{name: "contract/duplicate/same-batch", run: caseSameBatch},
		{name: "contract/duplicate/other-boundaries", run: caseOverlap},
		{name: "contract/duplicate/gap", run: caseGap},
		{name: "contract/empty-batch", run: caseEmpty},
		{name: "contract/one-range-refused", run: caseOneRefused},
		{name: "contract/rejects", run: caseRejects},
		{name: "contract/poison", run: casePoison},
		{name: "contract/ended-context", run: caseEndedContext},
	}
}

func caseSpec(e *env) error {
	c, err := e.client()
	if err != nil {
		return err
	}
	a, b := c.Spec(), c.Spec()
	switch {
	case !reflect.DeepEqual(a, b):
		return errors.New("two calls of Spec differ")
	case a.Class != connectors.Transactional:
		return fmt.Errorf("class %s; this kit is for transactional sinks", a.Class)
	case a.Name == "" || a.Connector == "":
		return fmt.Errorf("no name in %+v", a)
	}
	return nil
}

// caseRoundTrip: every field of a position comes back, to another process.
func caseRoundTrip(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	for tp, p := range a.at {
		if !p.None() {
			return fmt.Errorf("%s: an empty store has position %+v", tp, p)
		}
	}
	for range 3 {
		if err := a.step(10); err != nil {
			return err
		}
	}
	b, err := e.owner(log, 2, "b")
	if err != nil {
		return err
	}
	for tp, want := range a.at {
		got := b.at[tp]
		if got.TopicID != want.TopicID || got.Next != want.Next || got.LeaderEpoch != want.LeaderEpoch ||
			got.Seq != want.Seq || !bytes.Equal(got.Meta, want.Meta) {
			return fmt.Errorf("%s: stored %+v, read back %+v", tp, want, got)
		}
	}
	_, err = e.settle(log, 3)
	return err
}

// mustBe reports an error that is not of the wanted class.
func mustBe(err, class error, what string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s succeeded, want: %w", what, class)
	case !errors.Is(err, class):
		return fmt.Errorf("%s: got error %w, want one that matches: %w", what, err, class)
	}
	return nil
}

func caseOpenRepeat(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 7, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	if err := a.takeOver(e.ctx, 7, "a"); err != nil {
		return fmt.Errorf("the same fence again, as after a lost reply: %w", err)
	}
	if err := a.step(10); err != nil {
		return err
	}
	_, err = e.settle(log, 8)
	return err
}

func caseOpenLower(e *env) error {
	log := newModel(e)
	if _, err := e.owner(log, 9, "b"); err != nil {
		return err
	}
	a, err := e.newOwner(log)
	if err != nil {
		return err
	}
	err = a.takeOver(e.ctx, 8, "a")
	if err := mustBe(err, connectors.ErrFenced, "Open with a lower epoch"); err != nil {
		return err
	}
	fenced, ok := errors.AsType[*connectors.FencedError](err)
	if !ok || fenced.Stored.Epoch != 9 {
		return fmt.Errorf("the error does not tell the stored epoch 9, without which a lost log of claims cannot be noticed: %w", err)
	}
	return nil
}

func caseOpenSameEpoch(e *env) error {
	log := newModel(e)
	if _, err := e.owner(log, 9, "b"); err != nil {
		return err
	}
	a, err := e.newOwner(log)
	if err != nil {
		return err
	}
	return mustBe(a.takeOver(e.ctx, 9, "a"), connectors.ErrFenced, "Open with the stored epoch and another owner id")
}

// caseOpenAtomic: one refused partition means that none is taken over.
func caseOpenAtomic(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 5, "a")
	if err != nil {
		return err
	}
	b, err := e.newOwner(log)
	if err != nil {
		return err
	}
	tps := log.tps()
	_, err = b.sink.Open(e.ctx, []connectors.Assignment{
		{TP: tps[0], Fence: connectors.Fence{Epoch: 6, Owner: "b"}},
		{TP: tps[1], Fence: connectors.Fence{Epoch: 4, Owner: "b"}},
	})
	if err := mustBe(err, connectors.ErrFenced, "Open of two partitions, one with a lower epoch"); err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return fmt.Errorf("the refused Open has taken over a partition: %w", err)
	}
	_, err = e.settle(log, 7)
	return err
}

func caseFencedCommit(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	b, err := e.owner(log, 2, "b")
	if err != nil {
		return err
	}
	if err := mustBe(a.step(10), connectors.ErrFenced, "Commit after a take-over"); err != nil {
		return err
	}
	if err := b.step(10); err != nil {
		return err
	}
	if err := mustBe(a.step(10), connectors.ErrFenced, "Commit after a take-over and a commit of the new owner"); err != nil {
		return err
	}
	_, err = e.settle(log, 3)
	return err
}

// caseSameEpochCommit: the owner id counts in a commit too.
func caseSameEpochCommit(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	b := a.batch(10)
	for i := range b.Ranges {
		b.Ranges[i].Fence.Owner = "somebody-else"
	}
	if err := mustBe(a.sink.Commit(e.ctx, b), connectors.ErrFenced, "Commit with the stored epoch and another owner id"); err != nil {
		return err
	}
	_, err = e.settle(log, 2)
	return err
}

func caseSameBatch(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	b := a.batch(10)
	if err := a.commit(e.ctx, b); err != nil {
		return err
	}
	if err := mustBe(a.sink.Commit(e.ctx, b), connectors.ErrStale, "the same batch again"); err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	if err := mustBe(a.sink.Commit(e.ctx, b), connectors.ErrStale, "an old batch after a newer one"); err != nil {
		return err
	}
	_, err = e.settle(log, 2)
	return err
}

// caseOverlap: a batch that begins inside what is stored.
func caseOverlap(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	at := maps.Clone(a.at)
	for tp, p := range at {
		p.Next -= 1 + e.rng.Int64N(9)
		at[tp] = p
	}
	if err := mustBe(a.sink.Commit(e.ctx, a.batchFrom(at, 10)), connectors.ErrStale, "an overlapping batch"); err != nil {
		return err
	}
	_, err = e.settle(log, 2)
	return err
}

// caseGap: a batch that begins above what is stored would lose what is between.
func caseGap(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	at := maps.Clone(a.at)
	for tp, p := range at {
		p.Next += 1 + e.rng.Int64N(9)
		at[tp] = p
	}
	if err := mustBe(a.sink.Commit(e.ctx, a.batchFrom(at, 10)), connectors.ErrStale, "a batch above the stored position"); err != nil {
		return err
	}
	_, err = e.settle(log, 2)
	return err
}

// caseEmpty: positions move without records, as over the markers of aborted
// transactions.
func caseEmpty(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(9); err != nil { // offset 9 is a marker
		return err
	}
	b := a.batch(1)
	if len(b.Records) != 0 {
		return fmt.Errorf("the kit's model has records %v at a marker", b.Records)
	}
	if err := a.commit(e.ctx, b); err != nil {
		return fmt.Errorf("a batch without records: %w", err)
	}
	_, err = e.settle(log, 2)
	return err
}

// caseOneRefused: if one range cannot be applied, nothing of the batch is.
func caseOneRefused(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if err := a.step(10); err != nil {
		return err
	}
	b, err := e.newOwner(log)
	if err != nil {
		return err
	}
	one := []connectors.Assignment{{TP: log.tps()[1], Fence: connectors.Fence{Epoch: 2, Owner: "b"}}}
	if _, err := b.sink.Open(e.ctx, one); err != nil {
		return err
	}
	if err := mustBe(a.step(10), connectors.ErrFenced, "Commit of two partitions, one of which was taken over"); err != nil {
		return err
	}
	_, err = e.settle(log, 3)
	return err
}

func caseRejects(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	if !a.sink.Spec().Rejects {
		return nil // the runner stops instead
	}
	b := a.batch(10)
	bad := connectors.Record{TP: log.tps()[0], Offset: 4, LeaderEpoch: 3, RawKey: []byte{0xff}, RawValue: nil,
		Headers: []connectors.Header{{Key: "h", Value: []byte{0xfe}}, {Key: "null"}}}
	b.Rejects = []connectors.Reject{{Record: bad, Reason: "decode-value", Err: "the kit says so"}}
	if err := a.commit(e.ctx, b); err != nil {
		return fmt.Errorf("a batch with a reject: %w", err)
	}
	if err := e.rejected(Ref{log.topic, 0, 4}); err != nil {
		return err
	}
	stale := a.batch(10)
	for i := range stale.Ranges {
		stale.Ranges[i].From.Seq--
		stale.Ranges[i].From.Next--
	}
	bad.Offset = 14
	stale.Rejects = []connectors.Reject{{Record: bad, Reason: "decode-value", Err: "the kit says so"}}
	if err := mustBe(a.sink.Commit(e.ctx, stale), connectors.ErrStale, "a stale batch with a reject"); err != nil {
		return err
	}
	if err := e.rejected(Ref{log.topic, 0, 4}); err != nil {
		return fmt.Errorf("after a refused batch: %w", err)
	}
	_, err = e.settle(log, 2)
	return err
}

// casePoison: a record that the store refuses is named, and nothing of its
// batch is applied.
func casePoison(e *env) error {
	if e.kit.Poison == nil {
		return nil
	}
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	value, err := connectors.JSON.Decode(e.kit.Poison)
	if err != nil {
		return fmt.Errorf("Kit.Poison: %w", err)
	}
	for _, where := range []int{0, 5, -1} {
		b := a.batch(10)
		if where < 0 {
			where = len(b.Records) - 1
		}
		b.Records[where].Value, b.Records[where].RawValue = value, e.kit.Poison
		err := a.sink.Commit(e.ctx, b)
		bad := connectors.Rejections(err)
		if len(bad) != 1 || bad[0].Index != where && bad[0].Index != -1 {
			return fmt.Errorf("poison as record %d: got error %w, want one RejectError with that index, or -1", where, err)
		}
		if bad[0].Reason == "" || bad[0].Err == nil {
			return fmt.Errorf("poison as record %d: the RejectError has no reason or no error: %+v", where, bad[0])
		}
	}
	_, err = e.settle(log, 2)
	return err
}

// caseEndedContext: a call whose context has ended does not hang and leaves
// nothing half done.
func caseEndedContext(e *env) error {
	log := newModel(e)
	a, err := e.owner(log, 1, "a")
	if err != nil {
		return err
	}
	ended, cancel := context.WithCancel(e.ctx)
	cancel()
	b := a.batch(10)
	if err := a.sink.Commit(ended, b); err == nil {
		for _, r := range b.Ranges {
			a.at[r.TP] = r.To // it was quick enough
		}
	}
	_, err = e.settle(log, 2)
	return err
}

// rejected compares the stored rejects.
func (e *env) rejected(want ...Ref) error {
	got, err := e.store.Rejected(e.ctx)
	if err != nil {
		return fmt.Errorf("read the rejects back: %w", err)
	}
	count := map[Ref]int{}
	for _, r := range got {
		count[r]++
	}
	for _, r := range want {
		count[r]--
	}
	for r, n := range count {
		if n != 0 {
			return fmt.Errorf("reject %v is there %+d times too often (all: %v)", r, n, got)
		}
	}
	return nil
}
