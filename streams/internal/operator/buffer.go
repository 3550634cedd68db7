package operator

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/streams/state"
)

// joinBuffer holds the records of one side of a stream-stream join until stream
// time has passed them. A record's identity is (key, time, sequence); its row is
//
//	segment (8 bytes), length of key (4), key, time (8), sequence (8)
//
// all big endian, its value the record's. A segment is as long as the join
// reaches, so the records within reach of another lie in at most two of them,
// each in order of (time, sequence); and whole segments expire as one range.
type joinBuffer[V any] struct {
	name      string
	site      *Site
	store     state.Store
	value     *Codec[V]
	segmentMs int64
	expired   int64 // segments below it have been removed, by this task
	from, to  []byte
	row, vbuf []byte
}

func newJoinBuffer[V any](b *Builder, site *Site, store string, value *Codec[V], segmentMs int64) (*joinBuffer[V], error) {
	s, err := b.Store(store)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", store, err)
	}
	return &joinBuffer[V]{name: store, site: site, store: s, value: value, segmentMs: segmentMs, vbuf: buffer()}, nil
}

// at writes the key of the row of a record, or the lower end of those at a time.
func (s *joinBuffer[V]) at(dst []byte, segment int64, key []byte, timeMs int64, seq int64) []byte {
	dst = binary.BigEndian.AppendUint64(dst[:0], uint64(segment))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(key)))
	dst = append(dst, key...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(timeMs))
	return binary.BigEndian.AppendUint64(dst, uint64(seq))
}

// encode prepares what put writes.
func (s *joinBuffer[V]) encode(v *V) (err error) {
	s.site.enter()
	s.vbuf, err = s.value.Append(s.vbuf[:0], v)
	s.site.leave()
	return err
}

func (s *joinBuffer[V]) put(key []byte, timeMs, seq int64) error {
	s.row = s.at(s.row, timeMs/s.segmentMs, key, timeMs, seq)
	return s.store.Put(s.row, s.vbuf)
}

// get reads a record by its identity.
func (s *joinBuffer[V]) get(key []byte, timeMs, seq int64, v *V) (ok bool, err error) {
	s.row = s.at(s.row, timeMs/s.segmentMs, key, timeMs, seq)
	b, ok, err := s.store.Get(s.row)
	if err != nil || !ok {
		return false, err
	}
	return true, s.decode(b, v)
}

func (s *joinBuffer[V]) decode(b []byte, v *V) (err error) {
	s.site.enter()
	*v, err = s.value.Serde.Decode(b)
	s.site.leave()
	if err != nil {
		return fmt.Errorf("store %s: a row does not decode as the type of this release: %w", s.name, err)
	}
	return nil
}

// held is a record of a buffer.
type held[V any] struct {
	timeMs, seq int64
	value       V
}

// near appends the records of a key with from <= time <= to, in order of (time,
// sequence).
func (s *joinBuffer[V]) near(key []byte, from, to int64, found []held[V]) ([]held[V], error) {
	from = max(from, s.expired*s.segmentMs, 0)
	if from > to {
		return found, nil
	}
	for segment := from / s.segmentMs; segment <= to/s.segmentMs; segment++ {
		s.from = s.at(s.from, segment, key, max(from, segment*s.segmentMs), 0)
		s.to = s.at(s.to, segment, key, to+1, 0)
		for row, err := range s.store.Range(s.from, s.to) {
			if err != nil {
				return found, err
			}
			t := row.Key[len(row.Key)-16:]
			h := held[V]{timeMs: int64(binary.BigEndian.Uint64(t)), seq: int64(binary.BigEndian.Uint64(t[8:]))}
			if err := s.decode(row.Value, &h.value); err != nil {
				return found, err
			}
			found = append(found, h)
		}
	}
	return found, nil
}

// expire removes the segments that end before a time.
func (s *joinBuffer[V]) expire(before int64) error {
	segment := before / s.segmentMs
	if segment <= s.expired {
		return nil
	}
	from := binary.BigEndian.AppendUint64(nil, uint64(s.expired))
	s.expired = segment
	return s.store.Expire(from, binary.BigEndian.AppendUint64(nil, uint64(segment)))
}
