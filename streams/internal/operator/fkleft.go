package operator

import (
	"bytes"
	"encoding/binary"

	"github.com/millrace/millrace/streams/internal/task"
)

// fkLeft is the left side of a foreign-key join in one task: it takes the updates
// of the left table and the answers of the right side.
//
// Its store has a row for each left row that is part of the join: the number of its
// subscription (8 bytes), flags, the foreign key.
type fkLeft[K, VL, KR, VR, V any] struct {
	join    *ForeignJoin[K, VL, KR, VR, V]
	site    *Site
	seq     *Clock
	store   rawStore
	rows    Reader[VL]
	keyOf   KeyFunc[K, VL, KR]
	fn      JoinFunc[K, VL, VR, V]
	nils    Nil[V]
	next    Sink[K, V]
	results *Rows[V]
	pk, fk  []byte
	noFK    bool
	had     fkRowState
	row     []byte
	send    task.Out
	in      Record[K, VL]
	right   VR
	out     Record[K, V]
	old     Old[V]
}

const (
	fkOut byte = 1 << iota // a result is out
	fkHas                  // the row has a foreign key
)

// fkRowState is a row of the store.
type fkRowState struct {
	there bool
	seq   int64
	flags byte
	fk    []byte
}

func (j *ForeignJoin[K, VL, KR, VR, V]) left(b *Builder) (*fkLeft[K, VL, KR, VR, V], error) {
	return Join(b, j.Out, func() (*fkLeft[K, VL, KR, VR, V], error) {
		n := &fkLeft[K, VL, KR, VR, V]{join: j, site: b.Site(j.Node, task.Process, j.Handler), seq: b.Clock(j.Node + " count"),
			keyOf: j.Key(), fn: j.New(), nils: NilOf[V](), pk: buffer(), fk: buffer()}
		var err error
		if n.store, err = openRaw(b, j.Subscribed); err != nil {
			return nil, err
		}
		if n.rows, err = j.Left(b, n.site); err != nil {
			return nil, err
		}
		if j.Result != "" {
			if n.results, err = NewRows(b, n.site, j.Result, j.Value); err != nil {
				return nil, err
			}
		}
		n.next, err = j.Out.Build(b)
		return n, err
	})
}

// BuildLeft makes the node for updates of the left table.
func (j *ForeignJoin[K, VL, KR, VR, V]) BuildLeft(b *Builder) (Sink[K, VL], error) { return j.left(b) }

// BuildAnswers makes the entry for answers of the right side.
func (j *ForeignJoin[K, VL, KR, VR, V]) BuildAnswers(b *Builder) (Entry, error) {
	n, err := j.left(b)
	return fkAnswers[K, VL, KR, VR, V]{n}, err
}

// Push implements Sink.
func (n *fkLeft[K, VL, KR, VR, V]) Push(r *Record[K, VL]) error {
	if r.Outdated {
		return nil
	}
	if err := n.keys(r); err != nil {
		done, err := n.site.retry(err, func() error { return n.keys(r) })
		if err != nil || !done {
			return err
		}
	}
	if err := n.load(); err != nil {
		return err
	}
	n.send.Topic, n.send.Partition, n.send.TimeMs, n.send.Headers = n.join.SubscribeTopic, task.ByKey, r.TimeMs, r.Headers
	gone := r.NullValue || n.noFK && !n.join.LeftAlone
	if n.had.flags&fkHas != 0 && (gone || n.noFK || !bytes.Equal(n.had.fk, n.fk)) {
		if err := n.subscribe(fkUnsubscribe, n.had.fk); err != nil {
			return err
		}
	}
	switch {
	case gone && !n.had.there:
		return nil
	case gone:
		if err := n.store.Delete(n.pk); err != nil {
			return err
		}
		n.out = Record[K, V]{Key: r.Key, NullValue: true, TimeMs: r.TimeMs, Headers: r.Headers}
		return n.emit()
	}
	return n.renew(r)
}

// keys works the two keys out.
func (n *fkLeft[K, VL, KR, VR, V]) keys(r *Record[K, VL]) error {
	return n.site.user(func() (err error) {
		n.noFK = true
		if n.pk, err = n.join.LeftKey.Append(n.pk[:0], &r.Key); err != nil || r.NullValue {
			return err
		}
		key, null, err := n.keyOf(n.site.ctx, r)
		if err != nil || null {
			return err
		}
		n.noFK = false
		n.fk, err = n.join.RightKey.Append(n.fk[:0], &key)
		return err
	})
}

// load reads the row of the left key.
func (n *fkLeft[K, VL, KR, VR, V]) load() error {
	row, ok, err := n.store.Get(n.pk)
	if err != nil {
		return err
	}
	if n.had = (fkRowState{fk: n.had.fk[:0]}); !ok {
		return nil
	}
	if len(row) < 9 {
		return n.store.short(row, 9)
	}
	n.had = fkRowState{there: true, seq: int64(binary.BigEndian.Uint64(row)), flags: row[8], fk: append(n.had.fk, row[9:]...)}
	return nil
}

// renew subscribes a row anew; what has no foreign key goes out alone.
func (n *fkLeft[K, VL, KR, VR, V]) renew(r *Record[K, VL]) error {
	seq := n.seq.Ms() + 1
	n.seq.Advance(seq)
	what := fkSubscribe
	if n.had.flags&fkHas == 0 || !bytes.Equal(n.had.fk, n.fk) {
		if n.had.there {
			what = fkSubscribeLoud
		}
	}
	flags := n.had.flags & fkOut
	if n.noFK {
		if err := n.put(seq, flags|fkOut, nil); err != nil {
			return err
		}
		return n.joinWith(r, r.TimeMs, false)
	}
	if err := n.put(seq, flags|fkHas, n.fk); err != nil {
		return err
	}
	return n.subscribe(what, n.fk)
}

func (n *fkLeft[K, VL, KR, VR, V]) put(seq int64, flags byte, fk []byte) error {
	n.row = append(binary.BigEndian.AppendUint64(n.row[:0], uint64(seq)), flags)
	n.row = append(n.row, fk...)
	return n.store.Put(n.pk, n.row)
}

func (n *fkLeft[K, VL, KR, VR, V]) subscribe(what byte, fk []byte) error {
	n.row = appendSubscription(n.row[:0], what, n.site.task.env.Partition, n.seq.Ms(), n.pk)
	n.send.Key, n.send.Value = fk, n.row
	return n.site.task.env.Emit(&n.send)
}

// fkAnswers is the entry of the answers.
type fkAnswers[K, VL, KR, VR, V any] struct{ *fkLeft[K, VL, KR, VR, V] }

// Process implements Entry.
func (n fkAnswers[K, VL, KR, VR, V]) Process(r *task.Record) error {
	n.site.task.advance(r.TimeMs)
	what, seq, value, err := splitAnswer(r.Value)
	if err != nil {
		return n.store.wrap(err)
	}
	n.pk = append(n.pk[:0], r.Key...)
	if err := n.load(); err != nil {
		return err
	}
	if !n.had.there || n.had.seq != seq {
		return nil // the row has changed since it asked
	}
	n.in = Record[K, VL]{TimeMs: r.TimeMs, Headers: r.Headers}
	found, fatal, err := n.read(what == fkRow, value)
	if err != nil {
		done, err := n.site.retry(err, func() (err error) {
			found, fatal, err = n.read(what == fkRow, value)
			return err
		})
		if err != nil || !done {
			return err
		}
	}
	if fatal != nil || !found {
		return fatal
	}
	if what != fkRow && !n.join.LeftAlone {
		return n.withdraw(what)
	}
	if n.had.flags&fkOut == 0 {
		if err := n.put(seq, n.had.flags|fkOut, n.had.fk); err != nil {
			return err
		}
	}
	return n.joinWith(&n.in, r.TimeMs, what == fkRow)
}

// read gets the left row and decodes the right one.
func (n *fkLeft[K, VL, KR, VR, V]) read(has bool, value []byte) (found bool, fatal, err error) {
	_, found, err = n.rows.Get(n.pk, &n.in.Value)
	if fatal, err = blame(err); fatal != nil || err != nil || !found {
		return false, fatal, err
	}
	return found, nil, n.site.user(func() error {
		err := rowAs(n.join.LeftKey, n.pk, &n.in)
		if err == nil && has {
			_, err = n.join.RightVal.Decode(value, &n.right)
		}
		return err
	})
}

// withdraw sends the deletion for a row that has no right row any more.
func (n *fkLeft[K, VL, KR, VR, V]) withdraw(what byte) error {
	if n.had.flags&fkOut != 0 {
		if err := n.put(n.had.seq, n.had.flags&^fkOut, n.had.fk); err != nil {
			return err
		}
	} else if what == fkNone {
		return nil
	}
	n.out = Record[K, V]{Key: n.in.Key, NullValue: true, TimeMs: n.in.TimeMs, Headers: n.in.Headers}
	return n.emit()
}

// joinWith joins a left row with the right one, if there is one, and sends it.
func (n *fkLeft[K, VL, KR, VR, V]) joinWith(r *Record[K, VL], timeMs int64, found bool) error {
	n.out = Record[K, V]{Key: r.Key, TimeMs: timeMs, Headers: r.Headers}
	call := func() (err error) {
		var none VR
		if found {
			none = n.right
		}
		n.site.enter()
		n.out.Value, err = n.fn(n.site.ctx, r, none, found)
		n.site.leave()
		return err
	}
	if err := call(); err != nil {
		if done, err := n.site.retry(err, call); err != nil || !done {
			return err
		}
	}
	n.out.NullValue = n.nils.Is(&n.out.Value)
	return n.emit()
}

// emit keeps the result, if somebody looks results up, and passes it on.
func (n *fkLeft[K, VL, KR, VR, V]) emit() error {
	if n.results != nil {
		if n.join.Demand.raised {
			if err := n.results.GetOld(n.pk, &n.old); err != nil {
				return err
			}
			n.out.Old = &n.old
		}
		if n.out.NullValue {
			if err := n.results.Delete(n.pk); err != nil {
				return err
			}
		} else {
			encode := func() error { return n.results.Encode(&n.out.Value, n.out.TimeMs) }
			if err := encode(); err != nil {
				if done, err := n.site.retry(err, encode); err != nil || !done {
					return err
				}
			}
			if err := n.results.Put(n.pk); err != nil {
				return err
			}
		}
	}
	return n.next.Push(&n.out)
}
