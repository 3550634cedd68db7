package operator

import (
	"github.com/millrace/millrace/streams/internal/task"
)

// VersionedSource keeps the rows of a topic as they were at any time within the
// history; see versions. An update that is older than the newest of its key goes on
// as outdated, one that is older than the history is dropped as late.
type VersionedSource[K, V any] struct {
	Node      string
	Topic     string
	Store     string
	HistoryMs int64
	Handler   task.Handler
	Key       *Codec[K]
	Value     *Codec[V]
	Demand    *Demand
	Out       *Outlet[K, V]
}

// Build makes the node of one task.
func (s *VersionedSource[K, V]) Build(b *Builder) (Entry, error) {
	n := &versionedSource[K, V]{site: b.Site(s.Node, task.Decode, s.Handler), key: s.Key, val: s.Value}
	var err error
	if n.rows, err = newVersionRows(b, n.site, s.Store, s.HistoryMs, s.Value); err != nil {
		return nil, err
	}
	if s.Demand.raised {
		n.out.Old = new(Old[V])
	}
	n.next, err = s.Out.Build(b)
	return n, err
}

// View is that of the table.
func (s *VersionedSource[K, V]) View(b *Builder, site *Site) (Reader[V], error) {
	return newVersionRows(b, site, s.Store, s.HistoryMs, s.Value)
}

type versionedSource[K, V any] struct {
	site *Site
	key  *Codec[K]
	val  *Codec[V]
	rows *versionRows[V]
	next Sink[K, V]
	out  Record[K, V]
}

// Process implements Entry.
func (n *versionedSource[K, V]) Process(r *task.Record) error {
	if r.Key == nil {
		n.site.drop(dropNullKey)
		return nil
	}
	ok, err := decode(n.site, r, n.key, n.val, &n.out)
	if err != nil || !ok {
		return err
	}
	if n.out.Old != nil {
		var none V
		n.out.Old.Value = none
		_, found, err := n.rows.AsOf(r.Key, r.TimeMs, &n.out.Old.Value)
		if err != nil {
			return err
		}
		n.out.Old.Null = !found
	}
	until, ok, err := n.rows.put(r.Key, r.Value, r.TimeMs)
	if err != nil {
		return err
	}
	if !ok {
		n.site.drop(dropLate)
		return nil
	}
	n.out.Outdated = until != never
	return n.next.Push(&n.out)
}

// versionRows is a typed view of a store of versions.
type versionRows[V any] struct {
	*versions
	site  *Site
	value *Codec[V]
}

func newVersionRows[V any](b *Builder, site *Site, store string, historyMs int64, value *Codec[V]) (*versionRows[V], error) {
	v, err := newVersions(b, store, historyMs)
	return &versionRows[V]{v, site, value}, err
}

// Get implements Reader: the newest version.
func (s *versionRows[V]) Get(key []byte, v *V) (timeMs int64, ok bool, err error) {
	return s.AsOf(key, never, v)
}

// AsOf implements AsOfReader.
func (s *versionRows[V]) AsOf(key []byte, atMs int64, v *V) (timeMs int64, ok bool, err error) {
	b, timeMs, ok, err := s.asOf(key, atMs)
	if err != nil || !ok {
		return 0, false, err
	}
	s.site.enter()
	*v, err = s.value.Serde.Decode(b)
	s.site.leave()
	if err != nil {
		err = s.store.wrap(err)
	}
	return timeMs, err == nil, err
}
