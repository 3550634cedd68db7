package clicks

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
)

// Check compares what a job has written with what the events say. Take gets each record of the results, those of one key
// in order; Done says what is missing in the end.
type Check interface {
	Take(key, value []byte) error
	Done() error
}

// Long decodes a count as Kafka's LongSerializer writes it, and streams for an int64.
func Long(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("a count of %d bytes, want 8", len(b))
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

// Decimal decodes a count as goka's codec.Int64 writes it.
func Decimal(b []byte) (int64, error) { return strconv.ParseInt(string(b), 10, 64) }

// NewCheck checks the results of a job over the first n events. every: each update has to be there, else the last one of
// each key. number decodes a count.
func NewCheck(job string, n int64, every bool, number func([]byte) (int64, error)) (Check, error) {
	c := &counted{every: every, number: number, id: userOf, want: map[uint64]int64{}, got: map[uint64]int64{}}
	e := NewEvents()
	switch job {
	case Map:
		return newMapped(n), nil
	case Count:
		for range n {
			c.want[uint64(e.Next().User)]++
		}
	case Minute:
		c.id = windowOf
		for range n {
			v := e.Next()
			c.want[window(v.User, v.TimeMs)]++
		}
	default:
		return nil, fmt.Errorf("nothing checks the results of job %q", job)
	}
	return c, nil
}

// counted checks counts: of each key they go up, with every update by one, and end where the events do.
type counted struct {
	every     bool
	number    func([]byte) (int64, error)
	id        func(key []byte) (uint64, error)
	want, got map[uint64]int64
}

// Take implements Check.
func (c *counted) Take(key, value []byte) error {
	id, err := c.id(key)
	if err != nil {
		return err
	}
	n, err := c.number(value)
	if err != nil {
		return err
	}
	before := c.got[id]
	if n <= before || c.every && n != before+1 {
		return fmt.Errorf("key %q: %d comes behind %d", key, n, before)
	}
	c.got[id] = n
	return nil
}

// Done implements Check.
func (c *counted) Done() error {
	for id, n := range c.want {
		if c.got[id] != n {
			return fmt.Errorf("key %d is counted %d times, %d are true", id, c.got[id], n)
		}
	}
	if len(c.got) != len(c.want) {
		return fmt.Errorf("%d keys are counted, there are %d", len(c.got), len(c.want))
	}
	return nil
}

func userOf(key []byte) (uint64, error) {
	s, ok := strings.CutPrefix(string(key), "user-")
	u, err := strconv.ParseUint(s, 10, 32)
	if !ok || err != nil {
		return 0, fmt.Errorf("key %q is no user", key)
	}
	return u, nil
}

const minuteMs = 60_000

func window(user int, timeMs int64) uint64 { return uint64(timeMs/minuteMs)<<32 | uint64(user) }

// windowOf reads a windowed key: that of the user, then the window's start, 8 bytes.
func windowOf(key []byte) (uint64, error) {
	if len(key) < 8 {
		return 0, fmt.Errorf("key %q has no window", key)
	}
	u, err := userOf(key[:len(key)-8])
	return window(int(u), int64(binary.BigEndian.Uint64(key[len(key)-8:]))), err
}

// mapped checks records that are to come out once each, in whatever order: by their number and the sum of their hashes.
type mapped struct {
	seed      maphash.Seed
	want, got struct {
		n   int64
		sum uint64
	}
}

func newMapped(n int64) *mapped {
	m := &mapped{seed: maphash.MakeSeed()}
	e := NewEvents()
	for range n {
		if click := string(e.Next().Value); dear(click) {
			m.want.n++
			m.want.sum += m.hash([]byte(pageOf(click)), []byte(click))
		}
	}
	return m
}

func (m *mapped) hash(key, value []byte) uint64 {
	return maphash.Bytes(m.seed, key)*31 + maphash.Bytes(m.seed, value)
}

// Take implements Check.
func (m *mapped) Take(key, value []byte) error {
	m.got.n++
	m.got.sum += m.hash(key, value)
	return nil
}

// Done implements Check.
func (m *mapped) Done() error {
	switch {
	case m.got.n != m.want.n:
		return fmt.Errorf("%d records came out, %d should have", m.got.n, m.want.n)
	case m.got.sum != m.want.sum:
		return fmt.Errorf("the %d records that came out are not those that should have", m.got.n)
	}
	return nil
}
