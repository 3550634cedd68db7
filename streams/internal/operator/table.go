package operator

import (
	"encoding/binary"
	"errors"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/serde"
)

// TableSource keeps the latest value of each key of a topic in a store and
// passes each update on, a deletion as a null value. Rows are overwritten in
// the order of arrival, whatever their timestamps say.
type TableSource[K, V any] struct {
	Node    string
	Topic   string
	Store   string
	Handler task.Handler
	Key     *Codec[K]
	Value   *Codec[V]
	Demand  *Demand // for the old values of rows
	Out     *Outlet[K, V]
}

// Build makes the node of one task.
func (s *TableSource[K, V]) Build(b *Builder) (Entry, error) {
	n := &tableSource[K, V]{site: b.Site(s.Node, task.Decode, s.Handler), key: s.Key, val: s.Value}
	var err error
	if n.rows, err = NewRows(b, n.site, s.Store, s.Value); err != nil {
		return nil, err
	}
	if s.Demand.raised {
		n.out.Old = new(Old[V])
	}
	n.next, err = s.Out.Build(b)
	return n, err
}

type tableSource[K, V any] struct {
	site *Site
	key  *Codec[K]
	val  *Codec[V]
	rows *Rows[V]
	next Sink[K, V]
	out  Record[K, V]
	row  []byte
}

// Process implements Entry.
func (n *tableSource[K, V]) Process(r *task.Record) error {
	if r.Key == nil {
		n.site.drop(dropNullKey)
		return nil
	}
	ok, err := decode(n.site, r, n.key, n.val, &n.out)
	if err != nil || !ok {
		return err
	}
	if n.out.Old != nil {
		if err := n.rows.GetOld(r.Key, n.out.Old); err != nil {
			return err
		}
	}
	if r.Value == nil {
		err = n.rows.Delete(r.Key)
	} else {
		n.row = appendSourceRow(n.row[:0], r)
		err = n.rows.store.Put(r.Key, n.row)
	}
	if err != nil {
		return err
	}
	return n.next.Push(&n.out)
}

// appendSourceRow is the row of a source record: the store keeps the bytes of
// the topic, so that the topic can serve as its changelog.
func appendSourceRow(dst []byte, r *task.Record) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(r.TimeMs)), r.Value...)
}

// Restorer turns records of the source topic into the rows that processing
// them left. A record that does not decode left none: had the error chain not
// left it out, the task would not have got past it.
//
// The function is one for the whole topology and is called by all workers at
// once: it keeps nothing between calls.
func (s *TableSource[K, V]) Restorer() func(*task.Record) (key, value []byte, ok bool) {
	decodes := func(r *task.Record) (ok bool) {
		var out Record[K, V]
		defer func() {
			if recover() != nil { // a serde of the user's
				ok = false
			}
		}()
		err := decodeRecord(r, s.Key, s.Value, &out)
		// Not known is not bad: a row that is left out is lost.
		return err == nil || errors.Is(err, serde.ErrUnavailable)
	}
	return func(r *task.Record) (key, value []byte, ok bool) {
		if r.Key == nil || !decodes(r) {
			return nil, nil, false
		}
		if r.Value == nil {
			return r.Key, nil, true
		}
		return r.Key, appendSourceRow(nil, r), true
	}
}
