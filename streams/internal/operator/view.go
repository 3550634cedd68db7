package operator

import (
	"context"
	"errors"
	"fmt"
)

// Reader looks rows of a table up by their encoded keys. An error of a user
// function that takes part is a *FunctionError, a matter of the record; any
// other means that the store cannot be trusted.
type Reader[V any] interface {
	Get(key []byte, v *V) (timeMs int64, ok bool, err error)
}

// View makes a Reader of a table for one task. Tables that are computed from
// others row by row keep no rows of their own: their view asks the tables below
// and computes. User functions on the way run as code of the site that looks
// the row up.
type View[V any] func(*Builder, *Site) (Reader[V], error)

// FunctionError is what a user function returned during a look-up.
type FunctionError struct{ Err error }

// Error is that of the function.
func (e *FunctionError) Error() string { return e.Err.Error() }

// Unwrap is the function's error.
func (e *FunctionError) Unwrap() error { return e.Err }

// blame tells an error of a user function from one of a store.
func blame(err error) (fatal, user error) {
	if err == nil {
		return nil, nil
	}
	var f *FunctionError
	if errors.As(err, &f) {
		return nil, f.Err
	}
	return err, nil
}

// StoreView is the view of a table that is kept in a store.
func StoreView[V any](store string, value *Codec[V]) View[V] {
	return func(b *Builder, site *Site) (Reader[V], error) { return NewRows(b, site, store, value) }
}

// rowAs decodes the key of a row that is looked up, for a function that wants
// the whole record.
func rowAs[K, V any](key *Codec[K], k []byte, r *Record[K, V]) error {
	if _, err := key.Decode(k, &r.Key); err != nil {
		return fmt.Errorf("a key does not decode as the type of this release: %w", err)
	}
	return nil
}

// RowFunc makes a value of a row. Rows that are looked up have no headers.
type RowFunc[K, V, VR any] func(ctx context.Context, r *Record[K, V]) (VR, error)

type mapReader[K, V, VR any] struct {
	site *Site
	from Reader[V]
	key  *Codec[K]
	fn   RowFunc[K, V, VR]
	nils Nil[VR]
	in   Record[K, V]
}

// Get implements Reader.
func (m *mapReader[K, V, VR]) Get(key []byte, v *VR) (timeMs int64, ok bool, err error) {
	m.in.TimeMs, ok, err = m.from.Get(key, &m.in.Value)
	return m.compute(key, v, ok, err)
}

// AsOf implements AsOfReader.
func (m *mapReader[K, V, VR]) AsOf(key []byte, atMs int64, v *VR) (timeMs int64, ok bool, err error) {
	m.in.TimeMs, ok, err = asOf(m.from, key, atMs, &m.in.Value)
	return m.compute(key, v, ok, err)
}

func (m *mapReader[K, V, VR]) compute(key []byte, v *VR, found bool, err error) (timeMs int64, ok bool, _ error) {
	if ok = found; err != nil || !ok {
		return 0, false, err
	}
	m.site.enter()
	if err = rowAs(m.key, key, &m.in); err == nil {
		*v, err = m.fn(m.site.ctx, &m.in)
	}
	m.site.leave()
	if err != nil {
		return 0, false, &FunctionError{err}
	}
	return m.in.TimeMs, !m.nils.Is(v), nil
}

type filterReader[K, V any] struct {
	site *Site
	from Reader[V]
	key  *Codec[K]
	keep Predicate[K, V]
	in   Record[K, V]
}

// Get implements Reader.
func (f *filterReader[K, V]) Get(key []byte, v *V) (timeMs int64, ok bool, err error) {
	f.in.TimeMs, ok, err = f.from.Get(key, v)
	return f.test(key, v, ok, err)
}

// AsOf implements AsOfReader.
func (f *filterReader[K, V]) AsOf(key []byte, atMs int64, v *V) (timeMs int64, ok bool, err error) {
	f.in.TimeMs, ok, err = asOf(f.from, key, atMs, v)
	return f.test(key, v, ok, err)
}

func (f *filterReader[K, V]) test(key []byte, v *V, found bool, err error) (timeMs int64, ok bool, _ error) {
	if ok = found; err != nil || !ok {
		return 0, false, err
	}
	f.in.Value = *v
	f.site.enter()
	if err = rowAs(f.key, key, &f.in); err == nil {
		ok, err = f.keep(f.site.ctx, &f.in)
	}
	f.site.leave()
	if err != nil {
		return 0, false, &FunctionError{err}
	}
	return f.in.TimeMs, ok, nil
}

// AsOfReader looks rows up as they were at a time.
type AsOfReader[V any] interface {
	Reader[V]
	AsOf(key []byte, atMs int64, v *V) (timeMs int64, ok bool, err error)
}

// at makes a Reader of an AsOfReader for one time, which is set before each call.
type at[V any] struct {
	from AsOfReader[V]
	ms   int64
}

// Get implements Reader.
func (a *at[V]) Get(key []byte, v *V) (timeMs int64, ok bool, err error) {
	return a.from.AsOf(key, a.ms, v)
}

// errNoHistory is a defect: the topology lets no other table be asked.
var errNoHistory = errors.New("the table knows its rows only as they are")

// asOf asks the table below for the row as it was.
func asOf[V any](from Reader[V], key []byte, atMs int64, v *V) (timeMs int64, ok bool, err error) {
	if x, is := from.(AsOfReader[V]); is {
		return x.AsOf(key, atMs, v)
	}
	return 0, false, errNoHistory
}
