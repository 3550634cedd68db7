package operator

import (
	"encoding/binary"

	"github.com/millrace/millrace/streams/internal/task"
)

// fkRight is the right side of a foreign-key join in one task: it takes the
// subscriptions of left rows and the updates of the right table.
//
// Its store has a row for each subscription:
//
//	length of the foreign key (4 bytes), foreign key, left key
//
// with the left task's partition (4) and the subscription's number (8) as value.
type fkRight[K, VL, KR, VR, V any] struct {
	join    *ForeignJoin[K, VL, KR, VR, V]
	site    *Site
	store   rawStore
	rows    Reader[VR]
	right   VR
	from    []byte
	to      []byte
	value   []byte
	answer  []byte
	encoded []byte
	send    task.Out
}

func (j *ForeignJoin[K, VL, KR, VR, V]) right(b *Builder) (*fkRight[K, VL, KR, VR, V], error) {
	return Join(b, j, func() (*fkRight[K, VL, KR, VR, V], error) {
		n := &fkRight[K, VL, KR, VR, V]{join: j, site: b.Site(j.Subscriptions, task.Process, j.Handler), encoded: buffer()}
		n.send.Topic = j.AnswerTopic
		var err error
		if n.store, err = openRaw(b, j.Subscriptions); err != nil {
			return nil, err
		}
		n.rows, err = j.Right(b, n.site)
		return n, err
	})
}

// BuildRight makes the node for updates of the right table.
func (j *ForeignJoin[K, VL, KR, VR, V]) BuildRight(b *Builder) (Sink[KR, VR], error) {
	return j.right(b)
}

// BuildSubscriptions makes the entry for subscriptions.
func (j *ForeignJoin[K, VL, KR, VR, V]) BuildSubscriptions(b *Builder) (Entry, error) {
	n, err := j.right(b)
	return fkSubscribers[K, VL, KR, VR, V]{n}, err
}

func appendSubscriber(dst, fk, left []byte) []byte {
	dst = append(binary.BigEndian.AppendUint32(dst[:0], uint32(len(fk))), fk...)
	return append(dst, left...)
}

// Push implements Sink: all who subscribe to the row get it.
func (n *fkRight[K, VL, KR, VR, V]) Push(r *Record[KR, VR]) error {
	if r.Outdated {
		return nil
	}
	encode := func() error { return n.site.user(func() error { return n.encode(r) }) }
	if err := encode(); err != nil {
		if done, err := n.site.retry(err, encode); err != nil || !done {
			return err
		}
	}
	n.from = appendSubscriber(n.from, n.value, nil)
	n.to = successor(n.to, n.from)
	what := fkRow
	if r.NullValue {
		what = fkNoneLoud
	}
	for row, err := range n.store.Range(n.from, n.to) {
		if err != nil {
			return err
		}
		if len(row.Value) != 12 {
			return n.store.short(row.Value, 12)
		}
		s := subscription{partition: int32(binary.BigEndian.Uint32(row.Value)), seq: int64(binary.BigEndian.Uint64(row.Value[4:])), left: row.Key[len(n.from):]}
		if err := n.reply(s, what, r.TimeMs, r.Headers); err != nil {
			return err
		}
	}
	return nil
}

func (n *fkRight[K, VL, KR, VR, V]) encode(r *Record[KR, VR]) (err error) {
	if n.value, err = n.join.RightKey.Append(n.value[:0], &r.Key); err != nil || r.NullValue {
		return err
	}
	n.encoded, err = n.join.RightVal.Append(n.encoded[:0], &r.Value)
	return err
}

func (n *fkRight[K, VL, KR, VR, V]) reply(s subscription, what byte, timeMs int64, headers []task.Header) error {
	n.answer = appendAnswer(n.answer[:0], what, s.seq)
	if what == fkRow {
		n.answer = append(n.answer, n.encoded...)
	}
	n.send.Partition, n.send.Key, n.send.Value, n.send.TimeMs, n.send.Headers = s.partition, s.left, n.answer, timeMs, headers
	return n.site.task.env.Emit(&n.send)
}

// fkSubscribers is the entry of the subscriptions.
type fkSubscribers[K, VL, KR, VR, V any] struct{ *fkRight[K, VL, KR, VR, V] }

// Process implements Entry.
func (n fkSubscribers[K, VL, KR, VR, V]) Process(r *task.Record) error {
	n.site.task.advance(r.TimeMs)
	s, err := splitSubscription(r.Value)
	if err != nil {
		return n.store.wrap(err)
	}
	n.from = appendSubscriber(n.from, r.Key, s.left)
	if s.what == fkUnsubscribe {
		return n.store.Delete(n.from)
	}
	n.value = binary.BigEndian.AppendUint32(n.value[:0], uint32(s.partition))
	n.value = binary.BigEndian.AppendUint64(n.value, uint64(s.seq))
	if err := n.store.Put(n.from, n.value); err != nil {
		return err
	}
	var timeMs int64
	var found bool
	var fatal error
	look := func() (err error) {
		timeMs, found, err = n.rows.Get(r.Key, &n.right)
		if fatal, err = blame(err); fatal != nil || err != nil || !found {
			return err
		}
		return n.site.user(func() (err error) {
			n.encoded, err = n.join.RightVal.Append(n.encoded[:0], &n.right)
			return err
		})
	}
	if err := look(); err != nil {
		if done, err := n.site.retry(err, look); err != nil || !done {
			return err
		}
	}
	switch {
	case fatal != nil:
		return fatal
	case found:
		return n.reply(s, fkRow, max(timeMs, r.TimeMs), r.Headers)
	case s.what == fkSubscribeLoud:
		return n.reply(s, fkNoneLoud, r.TimeMs, r.Headers)
	}
	return n.reply(s, fkNone, r.TimeMs, r.Headers)
}
