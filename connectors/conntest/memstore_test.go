package conntest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/conntest"
)

// snapshots is a store in memory with snapshot isolation: a transaction reads
// what was there at its begin, and its commit fails if another one has written
// one of the same cells since. Two transactions that write different cells both
// commit, whatever they have read: the trap that a fence must not fall into.
type snapshots struct {
	mu      sync.Mutex
	version int64
	cells   map[string]cell // values are never changed in place
}

type cell struct {
	value   any
	version int64
}

var errConflict = errors.New("write conflict")

type transaction struct {
	store  *snapshots
	start  int64
	view   map[string]cell
	writes map[string]any
}

func (s *snapshots) begin() *transaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &transaction{store: s, start: s.version, view: maps.Clone(s.cells), writes: map[string]any{}}
}

func (t *transaction) read(k string) any {
	if v, ok := t.writes[k]; ok {
		return v
	}
	return t.view[k].value
}

func (t *transaction) write(k string, v any) { t.writes[k] = v }

func (t *transaction) commit() error {
	t.store.mu.Lock()
	defer t.store.mu.Unlock()
	for k := range t.writes {
		if t.store.cells[k].version > t.start {
			return fmt.Errorf("%w: %w: cell %s", connectors.ErrRetry, errConflict, k)
		}
	}
	t.store.version++
	for k, v := range t.writes {
		t.store.cells[k] = cell{v, t.store.version}
	}
	return nil
}

// fault is a way in which a sink is broken.
type fault int

const (
	sound                 fault = iota
	fenceOnlyRead               // the fence is compared and not written
	checkThenAct                // the check is a transaction of its own, before the data's
	positionFirst               // the position is committed before the data
	positionAfter               // the position is committed after the data
	noPositionCheck             // the position the batch starts from is not compared
	ownerIgnored                // only the epoch is compared in a commit
	equalEpochOpens             // an equal epoch takes over
	opensOneByOne               // Open is not atomic over the partitions
	lowerEpochOpens             // Open takes over whatever the epoch
	rejectsApart                // rejects are a transaction of their own
	swallowsPoison              // a poison record is dropped in silence
	unnamedPoison               // no fault: the sink cannot tell which record is bad
	blocksWithoutSayingSo       // holds a lock in Commit and does not declare it
)

// memory is a transactional sink on snapshots.
type memory struct {
	name  string
	store *snapshots
	fault fault
	lock  chan struct{} // for blocksWithoutSayingSo
}

func (m *memory) Spec() connectors.Spec {
	return connectors.Spec{Connector: "memory", Name: m.name, Class: connectors.Transactional, Rejects: true}
}
func (m *memory) Check(context.Context) []connectors.Issue       { return nil }
func (m *memory) Prepare(context.Context) error                  { return nil }
func (m *memory) Release(context.Context, []connectors.TP) error { return nil }
func (m *memory) Close() error                                   { return nil }
func (m *memory) fenceOf(t *transaction, tp connectors.TP) connectors.Fence {
	if f, ok := t.read("fence " + tp.String()).(connectors.Fence); ok {
		return f
	}
	return connectors.Fence{Epoch: -1}
}

func (m *memory) positionOf(t *transaction, tp connectors.TP) connectors.Position {
	if p, ok := t.read("position " + tp.String()).(connectors.Position); ok {
		return p
	}
	return connectors.NoPosition
}

func (m *memory) hold(ctx context.Context) (release func(), err error) {
	if m.fault != blocksWithoutSayingSo {
		return func() {}, nil
	}
	select {
	case m.lock <- struct{}{}:
		return func() { <-m.lock }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", connectors.ErrRetry, ctx.Err())
	}
}

func (m *memory) Open(ctx context.Context, as []connectors.Assignment) ([]connectors.Position, error) {
	release, err := m.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	t := m.store.begin()
	out := make([]connectors.Position, len(as))
	for i, a := range as {
		have := m.fenceOf(t, a.TP)
		ok := have.Older(a.Fence) || have == a.Fence ||
			m.fault == equalEpochOpens && have.Epoch == a.Fence.Epoch || m.fault == lowerEpochOpens
		if !ok {
			return nil, &connectors.FencedError{TP: a.TP, Mine: a.Fence, Stored: have}
		}
		t.write("fence "+a.TP.String(), a.Fence)
		out[i] = m.positionOf(t, a.TP)
		if m.fault == opensOneByOne {
			if err := t.commit(); err != nil {
				return nil, err
			}
			t = m.store.begin()
		}
	}
	if err := connectors.Reach(ctx, connectors.PointFence); err != nil {
		return nil, err
	}
	return out, t.commit()
}

// check compares fence and position.
func (m *memory) check(t *transaction, b *connectors.Batch) error {
	for _, r := range b.Ranges {
		have := m.fenceOf(t, r.TP)
		if m.fault == ownerIgnored {
			have.Owner = r.Fence.Owner
		}
		if have != r.Fence {
			return &connectors.FencedError{TP: r.TP, Mine: r.Fence, Stored: have}
		}
		at := m.positionOf(t, r.TP)
		if m.fault != noPositionCheck && (at.Next != r.From.Next || at.Seq != r.From.Seq) {
			return fmt.Errorf("%w: %s", connectors.ErrStale, r.TP)
		}
		if m.fault != fenceOnlyRead && m.fault != checkThenAct {
			t.write("fence "+r.TP.String(), r.Fence)
		}
	}
	return nil
}

func (m *memory) positions(t *transaction, b *connectors.Batch) {
	for _, r := range b.Ranges {
		t.write("position "+r.TP.String(), r.To)
	}
}

// data writes rows under cells of their own, so that they collide with nothing.
func (m *memory) data(t *transaction, b *connectors.Batch) error {
	for i, r := range b.Records {
		v, ok := r.Value.(map[string]any)
		id, isText := v["id"].(string)
		if !ok || !isText {
			if m.fault == swallowsPoison {
				continue
			}
			if m.fault == unnamedPoison {
				i = -1
			}
			return &connectors.RejectError{Index: i, Reason: "shape", Err: errors.New("no id")}
		}
		key, _ := v["key"].(string) // the kit's values have one
		t.write(fmt.Sprintf("row %s %d %d %p", r.TP, r.Offset, b.Ranges[0].Fence.Epoch, b), conntest.Row{ID: id, Key: key})
	}
	if m.fault != rejectsApart {
		m.rejects(t, b)
	}
	return nil
}

func (m *memory) rejects(t *transaction, b *connectors.Batch) {
	for _, r := range b.Rejects {
		ref := conntest.Ref{Topic: r.Record.TP.Topic, Partition: r.Record.TP.Partition, Offset: r.Record.Offset}
		t.write(fmt.Sprintf("reject %v", ref), ref)
	}
}

func (m *memory) Commit(ctx context.Context, b *connectors.Batch) error {
	release, err := m.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if m.fault == rejectsApart {
		t := m.store.begin()
		m.rejects(t, b)
		if err := t.commit(); err != nil {
			return err
		}
	}
	t := m.store.begin()
	if err := m.split(&t, b); err != nil {
		return err
	}
	if err := m.data(t, b); err != nil {
		return err
	}
	if err := connectors.Reach(ctx, connectors.PointData); err != nil {
		return err
	}
	if m.fault != positionFirst && m.fault != checkThenAct {
		if err := m.check(t, b); err != nil {
			return err
		}
	}
	if m.fault == positionAfter {
		if err := t.commit(); err != nil {
			return err
		}
		t = m.store.begin()
	}
	if m.fault != positionFirst {
		m.positions(t, b)
	}
	if err := connectors.Reach(ctx, connectors.PointPosition); err != nil {
		return err
	}
	if err := t.commit(); err != nil {
		return err
	}
	return connectors.Reach(ctx, connectors.PointCommitted)
}

// split does what the sinks that are broken in two transactions do first.
func (m *memory) split(t **transaction, b *connectors.Batch) error {
	switch m.fault {
	case positionFirst:
		if err := m.check(*t, b); err != nil {
			return err
		}
		m.positions(*t, b)
		if err := (*t).commit(); err != nil {
			return err
		}
		*t = m.store.begin()
	case checkThenAct:
		if err := m.check(*t, b); err != nil {
			return err
		}
	}
	return nil
}

// memoryStore is one store for the kit.
type memoryStore struct {
	name  string
	store *snapshots
	fault fault
	lock  chan struct{}
}

func (s *memoryStore) New() (connectors.TxSink, error) {
	return &memory{name: s.name, store: s.store, fault: s.fault, lock: s.lock}, nil
}

func (s *memoryStore) Rows(context.Context) ([]conntest.Row, error) {
	return collect[conntest.Row](s.store), nil
}

func (s *memoryStore) Rejected(context.Context) ([]conntest.Ref, error) {
	return collect[conntest.Ref](s.store), nil
}

func collect[T any](s *snapshots) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []T
	for _, c := range s.cells {
		if v, ok := c.value.(T); ok {
			out = append(out, v)
		}
	}
	return out
}

func memoryKit(f fault) conntest.Kit {
	return conntest.Kit{
		Poison: []byte(`{"id":null,"key":"k","n":1}`),
		Open: func(_ testing.TB, name string) conntest.Store {
			return &memoryStore{name: name, store: &snapshots{cells: map[string]cell{}}, fault: f, lock: make(chan struct{}, 1)}
		},
	}
}
