package operator

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/streams/state"
)

// waiting are the records of both sides of a join that have met nobody yet, in
// the order in which they go out alone:
//
//	time (8 bytes), side (1: the right side is 0), key, sequence (8)
//
// The rows are empty: the records are in their buffers.
type waiting struct {
	name      string
	store     state.Store
	row       []byte
	firstMs   int64 // no record waits that is older
	uncertain bool  // firstMs is to be looked up
}

const noneWaits = int64(1)<<62 - 1

func newWaiting(b *Builder, store string) (*waiting, error) {
	s, err := b.Store(store)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", store, err)
	}
	return &waiting{name: store, store: s, uncertain: true}, nil
}

func (w *waiting) at(side byte, key []byte, timeMs, seq int64) []byte {
	w.row = append(binary.BigEndian.AppendUint64(w.row[:0], uint64(timeMs)), side)
	w.row = append(w.row, key...)
	w.row = binary.BigEndian.AppendUint64(w.row, uint64(seq))
	return w.row
}

func (w *waiting) put(side byte, key []byte, timeMs, seq int64) error {
	w.firstMs = min(w.firstMs, timeMs)
	return w.store.Put(w.at(side, key, timeMs, seq), []byte{})
}

// met removes a record that has met another, if it waits.
func (w *waiting) met(side byte, key []byte, timeMs, seq int64) error {
	row := w.at(side, key, timeMs, seq)
	_, ok, err := w.store.Get(row)
	if err != nil || !ok {
		return err
	}
	w.uncertain = w.uncertain || timeMs == w.firstMs
	return w.store.Delete(row)
}

// first is the time of the oldest record that waits.
func (w *waiting) first() (int64, error) {
	if !w.uncertain {
		return w.firstMs, nil
	}
	w.firstMs, w.uncertain = noneWaits, false
	for row, err := range w.store.Range(nil, nil) {
		if err != nil {
			return 0, err
		}
		w.firstMs = int64(binary.BigEndian.Uint64(row.Key))
		break
	}
	return w.firstMs, nil
}

// waiter is a record that waits.
type waiter struct {
	side        byte
	key         []byte
	timeMs, seq int64
}

// until calls visit for the records that wait with a time below a bound; it
// removes those for which visit returns true.
func (w *waiting) until(bound int64, visit func(waiter) (gone bool, err error)) error {
	if bound <= 0 {
		return nil
	}
	w.uncertain = true
	for row, err := range w.store.Range(nil, binary.BigEndian.AppendUint64(nil, uint64(bound))) {
		if err != nil {
			return err
		}
		k := row.Key
		if len(k) < 17 {
			return fmt.Errorf("store %s: a row has %d bytes, its fixed parts alone take 17", w.name, len(k))
		}
		x := waiter{side: k[8], key: k[9 : len(k)-8], timeMs: int64(binary.BigEndian.Uint64(k)), seq: int64(binary.BigEndian.Uint64(k[len(k)-8:]))}
		gone, err := visit(x)
		if err != nil {
			return err
		}
		if gone {
			w.row = append(w.row[:0], k...)
			if err := w.store.Delete(w.row); err != nil {
				return err
			}
		}
	}
	return nil
}
