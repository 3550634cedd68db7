package conntest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors"
)

// testCase is one thing that may happen to a sink.
type testCase struct {
	name    string
	cluster bool // needs one
	run     func(e *env) error
}

// env is what one case works with. It belongs to the case's goroutine.
type env struct {
	tb      testing.TB
	kit     Kit
	ctx     context.Context
	name    string
	rng     *rand.Rand
	store   Store
	closers []func()
}

func (e *env) close() {
	for _, f := range slices.Backward(e.closers) {
		f()
	}
}

// client opens one more client of the store, behind a gate. It is closed at the
// end of the case only: a killed process closes nothing.
func (e *env) client() (*gate, error) {
	s, err := e.store.New()
	if err != nil {
		return nil, fmt.Errorf("open a client of the store: %w", err)
	}
	e.closers = append(e.closers, func() { _ = s.Close() }) // the case is over
	return newGate(s), nil
}

// model is the log that contract cases deliver from: two partitions of one
// topic, with gaps where a log has transaction markers.
type model struct {
	topic string
	id    connectors.TopicID
}

func newModel(e *env) *model {
	m := &model{topic: "conntest-" + e.name}
	for i := range m.id {
		m.id[i] = byte(e.rng.Uint32())
	}
	return m
}

func (m *model) tps() []connectors.TP {
	return []connectors.TP{{Topic: m.topic, Partition: 0}, {Topic: m.topic, Partition: 1}}
}

// has reports whether the log has a record at an offset.
func (m *model) has(offset int64) bool { return offset%5 != 4 }

// record is the record at an offset. Times are of 2001, as data often is old.
func (m *model) record(tp connectors.TP, offset int64) connectors.Record {
	id, key := fmt.Sprintf("p%d-%d", tp.Partition, offset), fmt.Sprintf("p%d-k%d", tp.Partition, offset%7)
	raw := fmt.Appendf(nil, `{"id":%q,"key":%q,"n":%d}`, id, key, offset)
	value, err := connectors.JSON.Decode(raw)
	if err != nil {
		panic(err) // the line above writes valid JSON
	}
	return connectors.Record{
		TP: tp, Offset: offset, LeaderEpoch: 3, Time: time.Date(2001, 1, 1, 0, 0, int(offset), 0, time.UTC),
		Key: key, Value: value, RawKey: []byte(key), RawValue: raw,
	}
}

// owner is a process that believes it owns the partitions of the model.
type owner struct {
	e     *env
	log   *model
	sink  *gate
	fence connectors.Fence
	at    map[connectors.TP]connectors.Position
}

// newOwner opens a client that has not taken over yet.
func (e *env) newOwner(log *model) (*owner, error) {
	sink, err := e.client()
	if err != nil {
		return nil, err
	}
	if err := sink.Prepare(e.ctx); err != nil {
		return nil, fmt.Errorf("Prepare: %w", err)
	}
	return &owner{e: e, log: log, sink: sink}, nil
}

// takeOver opens with an epoch and an owner id.
func (o *owner) takeOver(ctx context.Context, epoch int64, id string) error {
	f := connectors.Fence{Epoch: epoch, Owner: id}
	as := make([]connectors.Assignment, 0, 2)
	for _, tp := range o.log.tps() {
		as = append(as, connectors.Assignment{TP: tp, Fence: f})
	}
	at, err := o.sink.Open(ctx, as)
	if err != nil {
		return err
	}
	if len(at) != len(as) {
		return fmt.Errorf("Open returned %d positions for %d partitions", len(at), len(as))
	}
	o.fence, o.at = f, map[connectors.TP]connectors.Position{}
	for i, a := range as {
		o.at[a.TP] = at[i]
	}
	return nil
}

// owner makes a client and takes over.
func (e *env) owner(log *model, epoch int64, id string) (*owner, error) {
	o, err := e.newOwner(log)
	if err != nil {
		return nil, err
	}
	if err := o.takeOver(e.ctx, epoch, id); err != nil {
		return nil, fmt.Errorf("Open with epoch %d: %w", epoch, err)
	}
	return o, nil
}

// batch makes a commit of the next n offsets of each partition, from where the
// owner believes to be.
func (o *owner) batch(n int64) *connectors.Batch { return o.batchFrom(o.at, n) }

func (o *owner) batchFrom(at map[connectors.TP]connectors.Position, n int64) *connectors.Batch {
	b := &connectors.Batch{}
	for _, tp := range o.log.tps() {
		from := at[tp]
		first := max(from.Next, 0)
		for off := first; off < first+n; off++ {
			if o.log.has(off) {
				b.Records = append(b.Records, o.log.record(tp, off))
			}
		}
		to := connectors.Position{
			TopicID: o.log.id, Next: first + n, LeaderEpoch: 3, Seq: from.Seq + 1,
			Meta: fmt.Appendf(nil, "m%d", first+n),
		}
		b.Ranges = append(b.Ranges, connectors.Range{TP: tp, Fence: o.fence, From: from, To: to})
	}
	return b
}

// commit makes one call; on success the owner goes on from there.
func (o *owner) commit(ctx context.Context, b *connectors.Batch) error {
	if err := o.sink.Commit(ctx, b); err != nil {
		return err
	}
	for _, r := range b.Ranges {
		o.at[r.TP] = r.To
	}
	return nil
}

// step commits the next n offsets, trying again while the store is busy.
func (o *owner) step(n int64) error {
	for {
		err := o.commit(o.e.ctx, o.batch(n))
		if !errors.Is(err, connectors.ErrRetry) || o.e.ctx.Err() != nil {
			return err
		}
	}
}

// settle is the oracle: a last owner takes over, and the store must hold exactly
// what lies below the positions it reports. Then it goes on, and the same must
// hold again. It returns the positions found first.
func (e *env) settle(log *model, epoch int64) (map[connectors.TP]connectors.Position, error) {
	o, err := e.owner(log, epoch, "the-last")
	if err != nil {
		return nil, err
	}
	found := maps.Clone(o.at)
	if err := e.consistent(log, found); err != nil {
		return found, err
	}
	if err := o.step(10); err != nil {
		return found, fmt.Errorf("the last owner cannot go on from the stored positions: %w", err)
	}
	if err := e.consistent(log, o.at); err != nil {
		return found, fmt.Errorf("after one more commit: %w", err)
	}
	return found, nil
}

// consistent compares the rows with the log below the positions.
func (e *env) consistent(log *model, at map[connectors.TP]connectors.Position) error {
	var want []Row
	for _, tp := range log.tps() {
		for off := int64(0); off < at[tp].Next; off++ {
			if log.has(off) {
				r := log.record(tp, off)
				want = append(want, Row{ID: string(idOf(r)), Key: string(r.RawKey)})
			}
		}
	}
	return e.holds(want)
}

func idOf(r connectors.Record) string {
	m, _ := r.Value.(map[string]any) // the kit's own records are objects
	id, _ := m["id"].(string)
	return id
}

// holds compares the rows of the store with those wanted, which are given in the
// order of the log.
func (e *env) holds(want []Row) error {
	got, err := e.store.Rows(e.ctx)
	if err != nil {
		return fmt.Errorf("read the store back: %w", err)
	}
	if e.kit.Upsert {
		last := map[string]Row{}
		for _, r := range want {
			last[r.Key] = r
		}
		want = slices.Collect(maps.Values(last))
	}
	count := map[Row]int{}
	for _, r := range got {
		count[r]++
	}
	for _, r := range want {
		count[r]--
	}
	var errs []error
	for _, r := range slices.SortedFunc(maps.Keys(count), func(a, b Row) int { return cmp.Compare(a.ID, b.ID) }) {
		switch n := count[r]; {
		case n > 0:
			errs = append(errs, fmt.Errorf("row %s (key %s) is there %d times too often", r.ID, r.Key, n))
		case n < 0:
			errs = append(errs, fmt.Errorf("row %s (key %s) is missing", r.ID, r.Key))
		}
		if len(errs) == 5 {
			errs = append(errs, errors.New("and so on"))
			break
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("the store holds %d rows, %d belong there: %w", len(got), len(want), errors.Join(errs...))
	}
	return nil
}
