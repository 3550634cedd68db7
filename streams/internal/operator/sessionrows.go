package operator

import (
	"encoding/binary"
	"fmt"
)

// A session has two rows in its store. The first holds the aggregate and lies
// with the other sessions of its key, in order of time:
//
//	1, length of key (4 bytes), key, end (8), start (8)
//
// The second is empty and lies in order of the end, for what time makes due:
//
//	0, end (8), key, start (8)
//
// Numbers are big endian, both bounds inclusive.
type sessionRows[A any] struct {
	*Rows[A]
	from, to, row, due []byte
}

// session is one session as it was found.
type session[A any] struct {
	startMs, endMs int64
	value          A
	old            Old[A] // the same once more, if old values are asked for
}

const (
	sessionDue = iota
	sessionRow
)

func appendSession(dst, key []byte, end int64) []byte {
	dst = append(dst[:0], sessionRow)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(key)))
	dst = append(dst, key...)
	return binary.BigEndian.AppendUint64(dst, uint64(end))
}

func appendDue(dst []byte, end int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst[:0], sessionDue), uint64(end))
}

// near appends the sessions of a key that end at from or later and start at to
// or before, oldest first. Sessions of a key do not overlap, so those in order
// of their ends are in order of their starts.
func (s *sessionRows[A]) near(key []byte, from, to int64, old bool, found []session[A]) ([]session[A], error) {
	s.from = appendSession(s.from, key, max(from, 0))
	s.to = appendSession(s.to, key, -1) // as unsigned, the largest
	for row, err := range s.store.Range(s.from, s.to) {
		if err != nil {
			return found, err
		}
		x := session[A]{startMs: sessionStart(row.Key), endMs: int64(binary.BigEndian.Uint64(row.Key[len(row.Key)-16:]))}
		if x.startMs > to {
			break
		}
		if _, err := s.decode(row.Value, &x.value); err != nil {
			return found, err
		}
		if old {
			if _, err := s.decode(row.Value, &x.old.Value); err != nil {
				return found, err
			}
		}
		found = append(found, x)
	}
	return found, nil
}

// sessionStart is the start in the key of a row that holds an aggregate.
func sessionStart(row []byte) int64 { return int64(binary.BigEndian.Uint64(row[len(row)-8:])) }

// load reads a session that is known to be there.
func (s *sessionRows[A]) load(key []byte, startMs, endMs int64, v *A) (timeMs int64, err error) {
	s.rows(key, startMs, endMs)
	timeMs, ok, err := s.Get(s.row, v)
	if err == nil && !ok {
		err = fmt.Errorf("store %s: a window that is due has no row", s.name)
	}
	return timeMs, err
}

// rows sets row and due to the keys of the two rows of a session.
func (s *sessionRows[A]) rows(key []byte, startMs, endMs int64) {
	s.row = binary.BigEndian.AppendUint64(appendSession(s.row, key, endMs), uint64(startMs))
	s.due = binary.BigEndian.AppendUint64(append(appendDue(s.due, endMs), key...), uint64(startMs))
}

// put writes what Encode prepared.
func (s *sessionRows[A]) put(key []byte, startMs, endMs int64) error {
	s.rows(key, startMs, endMs)
	if err := s.store.Put(s.due, []byte{}); err != nil {
		return err
	}
	return s.store.Put(s.row, s.buf)
}

func (s *sessionRows[A]) remove(key []byte, startMs, endMs int64) error {
	s.rows(key, startMs, endMs)
	if err := s.store.Delete(s.due); err != nil {
		return err
	}
	return s.store.Delete(s.row)
}

// ending calls visit for each session with from <= end < to, in order of (end,
// key bytes, start). The key is valid during the call.
func (s *sessionRows[A]) ending(from, to int64, visit func(key []byte, startMs, endMs int64) error) error {
	if from = max(from, 0); from >= to {
		return nil
	}
	for row, err := range s.store.Range(appendDue(nil, from), appendDue(nil, to)) {
		if err != nil {
			return err
		}
		k := row.Key
		if len(k) < 17 {
			return fmt.Errorf("store %s: the due row of a session has %d bytes, its times alone take 17", s.name, len(k))
		}
		end, start := int64(binary.BigEndian.Uint64(k[1:])), int64(binary.BigEndian.Uint64(k[len(k)-8:]))
		if err := visit(k[9:len(k)-8], start, end); err != nil {
			return err
		}
	}
	return nil
}

// expire removes the sessions with from <= end < to.
func (s *sessionRows[A]) expire(from, to int64) error {
	err := s.ending(from, to, func(key []byte, startMs, endMs int64) error {
		s.rows(key, startMs, endMs)
		return s.store.Expire(s.row, append(s.row, 0))
	})
	if from = max(from, 0); err != nil || from >= to {
		return err
	}
	return s.store.Expire(appendDue(nil, from), appendDue(nil, to))
}
