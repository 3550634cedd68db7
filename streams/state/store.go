package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
)

var (
	// ErrNewerFormat reports a store written by a later release. It is
	// refused, never rewritten: the later release may still own it.
	ErrNewerFormat = errors.New("state: store has a newer format")

	// ErrCorrupt reports an image that cannot be trusted. The caller wipes it
	// and rebuilds it from the changelog; nothing is ever repaired in place,
	// as a repair may keep batch n+1 without batch n.
	ErrCorrupt = errors.New("state: store is corrupt")

	// ErrNoRoom reports a write for which there was no room: the disk is full, a quota,
	// or the table of open files. The image is of no use until it
	// is opened again; what is on disk by then is an earlier committed state, or damage
	// that the opening finds. Unlike [ErrCorrupt] it leaves the files in place.
	ErrNoRoom = errors.New("state: no room to write")

	// ErrClosed reports the use of a closed image or folder.
	ErrClosed = errors.New("state: closed")
)

// Row is one entry of a store. Where rows are written, a nil Value means that
// the key is deleted; an empty Value that is not nil is a value.
type Row struct {
	Key   []byte
	Value []byte
}

// Store is the ordered byte map that an operator works on. Keys order as
// bytes.Compare orders them.
type Store interface {
	// Get returns the value of key. The slice is valid until the next call on
	// the store and must not be changed.
	Get(key []byte) (value []byte, ok bool, err error)

	// Put sets the value of key. Both slices are copied. A nil value deletes
	// the key, an empty one does not.
	Put(key, value []byte) error

	// Delete removes key, whether or not it is there.
	Delete(key []byte) error

	// Range yields the rows with from <= key < to in key order; a nil from
	// is the start, a nil to the end. An error is yielded once, as the last
	// pair. The slices are valid until the next step. Rows may be put and
	// deleted while ranging: the range shows what was there when it began,
	// except that a row not yet reached may show its newer value.
	Range(from, to []byte) iter.Seq2[Row, error]

	// Backward is Range in descending order.
	Backward(from, to []byte) iter.Seq2[Row, error]

	// Expire removes the rows with from <= key < to because stream time has
	// passed them. It differs from deleting them one by one only in what the
	// changelog gets: nothing for a row that was never committed.
	Expire(from, to []byte) error
}

// Position says how much of its changelog a store contains.
type Position struct {
	// TopicID is the id of the changelog topic; another id under the same name
	// is another topic, and the store is of no use for it.
	TopicID [16]byte

	// Next is the offset after the last record that the store contains.
	Next int64

	// LeaderEpoch is the epoch of that last record, or an earlier one, or -1
	// when unknown. With it, a log that lost its tail is recognised.
	LeaderEpoch int32

	// TimeMs is when the position was stored, in milliseconds since 1970 by
	// the owner's clock, 0 when unknown. A store that was away for longer than
	// the changelog keeps its tombstones must not be caught up from where it
	// was: it would keep rows whose deletion it never sees.
	TimeMs int64
}

// Known reports whether the position belongs to a topic at all. The zero
// Position, that of a new store, does not.
func (p Position) Known() bool { return p.TopicID != [16]byte{} }

// PositionSize is the length of an encoded position: topic id, next offset, leader
// epoch and time.
const PositionSize = 16 + 8 + 4 + 8

// Append writes the position as engines store it.
func (p Position) Append(dst []byte) []byte {
	dst = append(dst, p.TopicID[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Next))
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.LeaderEpoch))
	return binary.BigEndian.AppendUint64(dst, uint64(p.TimeMs))
}

// DecodePosition reads what Append wrote.
func DecodePosition(raw []byte) (p Position, err error) {
	if len(raw) != PositionSize {
		return p, fmt.Errorf("position has %d bytes, not %d", len(raw), PositionSize)
	}
	copy(p.TopicID[:], raw)
	p.Next = int64(binary.BigEndian.Uint64(raw[16:]))
	p.LeaderEpoch = int32(binary.BigEndian.Uint32(raw[24:]))
	p.TimeMs = int64(binary.BigEndian.Uint64(raw[28:]))
	return p, nil
}

// Image is the committed contents of one store. Implementations pass the suite
// in the package statetest.
type Image interface {
	// Get returns the value of key; the slice is valid until the next call.
	Get(key []byte) (value []byte, ok bool, err error)

	// Range yields rows as [Store.Range] does, Backward as [Store.Backward].
	Range(from, to []byte) iter.Seq2[Row, error]
	Backward(from, to []byte) iter.Seq2[Row, error]

	// Apply changes rows (nil value: delete) and the position in one atomic
	// and durable step: after a crash both are there or neither is. Rows come
	// in key order, each key once. The slices are not kept.
	Apply(rows []Row, pos Position) error

	// Position returns what the last Apply stored, or the zero Position.
	Position() Position

	// Wipe makes the image empty, its position zero, durably.
	Wipe() error

	// Close releases the image. Calls after Close return ErrClosed.
	Close() error
}
