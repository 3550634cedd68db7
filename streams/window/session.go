package window

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/serde"
)

// Sessions describes session windows: stretches of records of a key that are no
// further apart than the gap. Both ends of a session belong to it, so as a Window
// it ends 1 ms after its last record.
type Sessions struct {
	GapMs   int64
	GraceMs int64
}

// SessionsOf describes sessions by gap and grace.
func SessionsOf(gap, grace time.Duration) Sessions {
	return Sessions{GapMs: gap.Milliseconds(), GraceMs: grace.Milliseconds()}
}

// Validate names the limit that is broken.
func (s Sessions) Validate() error {
	switch {
	case s.GapMs < 1:
		return fmt.Errorf("session gap is %d ms, at least 1 is needed", s.GapMs)
	case s.GraceMs < 0:
		return fmt.Errorf("grace is %d ms, must not be negative", s.GraceMs)
	}
	return nil
}

// Closed reports whether a session whose last record is at endMs takes no more
// records at this stream time: stream time > end + gap + grace.
func (s Sessions) Closed(endMs, streamTimeMs int64) bool {
	return endMs < s.ClosedBefore(streamTimeMs)
}

// ClosedBefore returns the bound below which the end of every closed session
// lies.
func (s Sessions) ClosedBefore(streamTimeMs int64) int64 {
	return streamTimeMs - s.GapMs - s.GraceMs
}

// String reads like "sessions 30m0s apart, grace 1m0s".
func (s Sessions) String() string {
	ms := func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }
	return "sessions " + ms(s.GapMs) + " apart, grace " + ms(s.GraceMs)
}

// SessionSerde is the serde of session keys as Kafka writes them: the bytes of
// the key, then the times of the last and of the first record in milliseconds, 8
// bytes big endian each.
func SessionSerde[K any](inner serde.Serde[K]) serde.Serde[Windowed[K]] {
	return sessionSerde[K]{inner}
}

type sessionSerde[K any] struct{ inner serde.Serde[K] }

func (s sessionSerde[K]) Append(dst []byte, v Windowed[K]) ([]byte, error) {
	dst, err := s.inner.Append(dst, v.Key)
	if err != nil {
		return dst, err
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.Window.EndMs()-1))
	return binary.BigEndian.AppendUint64(dst, uint64(v.Window.StartMs())), nil
}

func (s sessionSerde[K]) Decode(b []byte) (Windowed[K], error) {
	if len(b) < 16 {
		return Windowed[K]{}, fmt.Errorf("session key has %d bytes, its times alone take 16", len(b))
	}
	at := len(b) - 16
	k, err := s.inner.Decode(b[:at])
	if err != nil {
		return Windowed[K]{}, err
	}
	end, start := int64(binary.BigEndian.Uint64(b[at:])), int64(binary.BigEndian.Uint64(b[at+8:]))
	return Windowed[K]{k, Between(start, end+1)}, nil
}
