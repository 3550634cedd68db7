package operator

import (
	"bytes"
	"encoding/binary"
	"math"
)

// versions keeps the history of each key: what its value was as of any time within
// the history kept. A row is one version:
//
//	length of the key (4 bytes), key, time (8) counted down, so that the newest
//	of a key comes first
//
// Its value is a byte (1, or 0 for a deletion) and the encoded value. A version
// holds until the next one of its key. The time of the store is the highest of a
// version put into it, whatever its key; reads and writes before that minus the
// history find nothing, but that the newest version of a key is found however old.
type versions struct {
	store     rawStore
	clock     *Clock
	historyMs int64
	sweep     sweep
	from, to  []byte
	row       []byte
	last      []byte // of the sweep: the key it is at, and whether a version of it
	covered   bool   // holds at the edge of the history, so that older ones are not needed
}

func newVersions(b *Builder, name string, historyMs int64) (*versions, error) {
	return Join(b, "versions "+name, func() (*versions, error) {
		store, err := openRaw(b, name)
		return &versions{store: store, clock: b.Clock(name + " versions"), historyMs: historyMs, sweep: sweep{store: store}}, err
	})
}

func appendVersion(dst, key []byte, timeMs int64) []byte {
	dst = append(binary.BigEndian.AppendUint32(dst[:0], uint32(len(key))), key...)
	return binary.BigEndian.AppendUint64(dst, uint64(math.MaxInt64-timeMs))
}

func versionTime(row []byte) int64 {
	return math.MaxInt64 - int64(binary.BigEndian.Uint64(row[len(row)-8:]))
}

// edge is the earliest time that can be read and written.
func (s *versions) edge() int64 { return s.clock.Ms() - s.historyMs }

// put adds a version; a nil value deletes from then on. until is when the next
// version begins, never for the newest; ok is false if it is too old to be taken.
func (s *versions) put(key, value []byte, timeMs int64) (until int64, ok bool, err error) {
	s.clock.Advance(timeMs)
	if timeMs < s.edge() {
		return 0, false, nil
	}
	until = never
	s.from, s.to = appendVersion(s.from, key, math.MaxInt64), appendVersion(s.to, key, timeMs)
	for row, err := range s.store.Range(s.from, s.to) {
		if err != nil {
			return 0, false, err
		}
		until = versionTime(row.Key)
	}
	if value == nil {
		s.row = append(s.row[:0], 0)
	} else {
		s.row = append(append(s.row[:0], 1), value...)
	}
	if err := s.store.Put(s.to, s.row); err != nil {
		return 0, false, err
	}
	return until, true, s.sweep.step(s.gone)
}

// gone reports a version that nobody can read any more. The sweep asks in order, so
// those of a key come newest first; when it begins in the middle of a key, the
// oldest kept for it then may stay for one more round.
func (s *versions) gone(row, value []byte) bool {
	key := row[:len(row)-8]
	if !bytes.Equal(key, s.last) {
		s.last, s.covered = append(s.last[:0], key...), false
	}
	if s.covered {
		return true
	}
	if versionTime(row) > s.edge() {
		return false
	}
	s.covered = true
	return value[0] == 0 && s.oldest(row)
}

// oldest reports whether a key has no version older than a row: a deletion that
// hides nothing need not be kept.
func (s *versions) oldest(row []byte) bool {
	for _, err := range s.store.Range(append(append([]byte{}, row...), 0), successor(nil, row[:len(row)-8])) {
		_ = err // there is one, or it cannot be known: whoever reads next gets the error
		return false
	}
	return true
}

// asOf is the value of a key at a time, with when it began.
func (s *versions) asOf(key []byte, timeMs int64) (value []byte, from int64, ok bool, err error) {
	s.from, s.to = appendVersion(s.from, key, timeMs), successor(s.to, appendVersion(s.to, key, 0)[:4+len(key)])
	for row, err := range s.store.Range(s.from, s.to) {
		if err != nil {
			return nil, 0, false, err
		}
		if from = versionTime(row.Key); row.Value[0] == 0 {
			return nil, 0, false, nil
		}
		value, ok = row.Value[1:], true
		break
	}
	if !ok || timeMs >= s.edge() {
		return value, from, ok, nil
	}
	// Before the edge only the newest version may be read.
	s.row = append(s.row[:0], value...)
	newest := int64(0)
	for row, err := range s.store.Range(appendVersion(nil, key, math.MaxInt64), s.to) {
		if err != nil {
			return nil, 0, false, err
		}
		newest = versionTime(row.Key)
		break
	}
	if newest != from {
		return nil, 0, false, nil
	}
	return s.row, from, true, nil
}
