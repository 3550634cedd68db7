package streams

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
)

// Row is a row of a table as a view finds it. Time is that of the last record that
// counts in it.
type Row[K, V any] struct {
	Key   K
	Value V
	Time  time.Time
}

// View looks at the rows of a table while its application runs, in this process or
// elsewhere. It shows what is committed, never what a transaction that is open has
// written and an abort would take back. It may be used from any goroutine, but not
// from functions of the topology: they have the stores themselves.
//
// A key is asked for where it is processed: in this process between two records, in
// another one over HTTP, where that has an address (QueryAddr). While a task is on its
// way from one process to another a view waits for it, as long as ctx allows.
type View[K, V any] struct {
	at   lookup
	key  *operator.Codec[K]
	val  *operator.Codec[V]
	keep time.Duration // retention of a store's rows, 0: for ever
}

// Get returns the value of a key.
func (v View[K, V]) Get(ctx context.Context, k K) (value V, ok bool, err error) {
	row, ok, err := v.Row(ctx, k)
	return row.Value, ok, err
}

// Row is Get with the row's time.
func (v View[K, V]) Row(ctx context.Context, k K) (row Row[K, V], ok bool, err error) {
	key, err := v.encode(k)
	if err != nil {
		return row, false, err
	}
	raw, a, err := v.at.get(ctx, key, key)
	if err != nil || raw == nil || v.gone(raw, a.StreamMs) {
		return row, false, err
	}
	row, err = v.decode(key, raw)
	return row, err == nil, err
}

// Range yields the rows with from <= key < to, of all partitions, in order of the
// keys' bytes. It takes some rows at a time, each time of what is committed then.
func (v View[K, V]) Range(ctx context.Context, from, to K) iter.Seq2[Row[K, V], error] {
	a, err := v.encode(from)
	b, err2 := v.encode(to)
	if err == nil {
		err = err2
	}
	return v.rows(ctx, a, b, err)
}

// All yields all rows as Range does.
func (v View[K, V]) All(ctx context.Context) iter.Seq2[Row[K, V], error] {
	return v.rows(ctx, nil, nil, nil)
}

func (v View[K, V]) rows(ctx context.Context, from, to []byte, err error) iter.Seq2[Row[K, V], error] {
	return func(yield func(Row[K, V], error) bool) {
		if err != nil {
			yield(Row[K, V]{}, err)
			return
		}
		for f, err := range v.at.scan(ctx, nil, from, to) {
			if err == nil && v.gone(f.Value, f.streamMs) {
				continue
			}
			var row Row[K, V]
			if err == nil {
				row, err = v.decode(f.Key, f.Value)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Owner says which process works on a key, and where copies are.
func (v View[K, V]) Owner(k K) (Owner, error) {
	if v.at.err != nil {
		return Owner{}, v.at.err
	}
	key, err := v.encode(k)
	if err != nil {
		return Owner{}, err
	}
	return v.at.owner(key)
}

func (v View[K, V]) encode(k K) ([]byte, error) {
	if v.at.err != nil {
		return nil, v.at.err
	}
	key, err := v.key.Append([]byte{}, &k)
	return key, v.at.wrap(err)
}

// gone reports a row that has outlived the retention of its store.
func (v View[K, V]) gone(row []byte, streamMs int64) bool {
	return v.keep > 0 && streamMs >= 0 && len(row) >= 8 && int64(binary.BigEndian.Uint64(row)) <= streamMs-v.keep.Milliseconds()
}

func (v View[K, V]) decode(key, raw []byte) (row Row[K, V], err error) {
	if row.Key, err = v.key.Serde.Decode(key); err != nil {
		return row, v.at.wrap(err)
	}
	row.Value, row.Time, err = decodeRow(v.val, raw)
	return row, v.at.wrap(err)
}

// decodeRow reads a row: 8 bytes of time, then the value.
func decodeRow[V any](val *operator.Codec[V], raw []byte) (v V, at time.Time, err error) {
	if len(raw) < 8 {
		return v, at, fmt.Errorf("a row has %d bytes, its timestamp alone takes 8", len(raw))
	}
	v, err = val.Serde.Decode(raw[8:])
	return v, time.UnixMilli(int64(binary.BigEndian.Uint64(raw))).UTC(), err
}

// Owner says where a key is. Addr is the address of the process that works on it, ""
// if that answers no queries, Standbys those of processes with copies. Here and
// HereCopy tell whether this process is one of them; Known is false while the key's
// task is on its way from one process to another.
type Owner struct {
	Partition      int32
	Addr           string
	Standbys       []string
	Here, HereCopy bool
	Known          bool
}

func (l *lookup) owner(key []byte) (Owner, error) {
	unit, err := l.run.job.UnitOf(l.store, key)
	if err != nil {
		return Owner{}, l.wrap(err)
	}
	p, err := l.run.job.Where(l.store, unit)
	return Owner{unit, p.Addr, p.Standbys, p.Here, p.HereCopy, p.Known}, l.wrap(err)
}

// Lags tells what the copies in this process lack, and the stores that are being
// restored, in records by partition.
func (r *Running) Lags() map[int32]int64 { return r.job.Lags() }
