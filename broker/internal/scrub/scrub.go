// Package scrub reads what lies on the disk and is read by nobody, slowly and for ever: a bit that flips there is found before the
// last good copy of the record is gone. Package commitlog knows what to look at; this one decides when.
//
// A [Scrubber] goes over the partitions one after the other, in small steps with a pause behind each, so that on average no more than
// BytesPerSecond are read. It has no goroutine of its own: each step is a timer's, and sets the next. A round over everything
// begins Every after the last one began, so an idle broker reads its folder so often and no more. Nothing here holds a lock that
// an append or a fetch waits for.
//
// What it found is in the log and in [Scrubber.Status]; how far it has come is remembered by nobody. After a restart it begins
// at a partition that the clock chooses: a broker that is restarted often does not check the same few ones again and again.
package scrub

import (
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
)

// Options of a Scrubber.
type Options struct {
	// Partitions gives those that are open now; it may be called at any time.
	Partitions iter.Seq[*partition.Partition]
	// BytesPerSecond bounds what is read. 0 is 8 MiB, which reads a terabyte in a day and a half.
	BytesPerSecond int64
	// Every is how far apart the beginnings of two rounds are, if one does not take longer. 0 is a day. The first round begins
	// after a hundredth of it: a start has better things to do.
	Every  time.Duration
	Clock  clock.Clock  // nil is the system's
	Logger *slog.Logger // nil discards
}

// Validate names the field that is missing or out of its limits.
func (o Options) Validate() error {
	switch {
	case o.Partitions == nil:
		return fmt.Errorf("scrub: Partitions is nil")
	case o.BytesPerSecond < 0:
		return fmt.Errorf("scrub: BytesPerSecond is %d, must not be negative", o.BytesPerSecond)
	case o.Every < 0:
		return fmt.Errorf("scrub: Every is %v, must not be negative", o.Every)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.BytesPerSecond == 0 {
		o.BytesPerSecond = 8 << 20
	}
	if o.Every == 0 {
		o.Every = 24 * time.Hour
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// chunk is how many bytes are read without a pause.
const chunk = 256 << 10

// Scrubber scrubs the partitions of a broker.
type Scrubber struct {
	o Options

	mu     sync.Mutex // held by a step; owns what follows
	closed bool
	timer  clock.Timer
	round  []*partition.Partition // that are left of the round
	began  time.Time              // of the round
	at     *partition.Scrub       // nil between two partitions
	once   bool                   // a round was begun

	status status
}

// Start starts a scrubber.
func Start(o Options) (*Scrubber, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Scrubber{o: o.withDefaults()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after(s.o.Every / 100)
	return s, nil
}

// Close ends the scrubber, when the step that is under way has ended.
func (s *Scrubber) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
	return nil
}

// after sets the next step. mu is held.
func (s *Scrubber) after(d time.Duration) { s.timer = s.o.Clock.AfterFunc(d, s.step) }

// step looks at some bytes, or begins a round.
func (s *Scrubber) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.at == nil && len(s.round) == 0 {
		s.begin()
	}
	read := int64(0)
	for read < chunk { // most partitions are small: several of them share a step
		if s.at == nil {
			if len(s.round) == 0 {
				s.status.done()
				s.after(max(s.o.Every-s.o.Clock.Now().Sub(s.began), s.pause(read)))
				return
			}
			s.at, s.round = s.round[0].Scrub(), s.round[1:]
		}
		did, err := s.at.Step(chunk - read)
		read += max(did.Bytes, 512) // a look at an empty partition is not for nothing
		s.status.note(s.o.Logger, s.at.Name(), did, err)
		if did.Done || err != nil {
			s.at = nil
		}
	}
	s.after(s.pause(read))
}

// pause is how long so many bytes may take.
func (s *Scrubber) pause(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(s.o.BytesPerSecond) * float64(time.Second))
}

// begin takes all partitions that are open now, the first time from one in the middle on.
func (s *Scrubber) begin() {
	s.began = s.o.Clock.Now()
	for p := range s.o.Partitions {
		s.round = append(s.round, p)
	}
	if n := len(s.round); n > 0 && !s.once {
		first := int(uint64(s.began.UnixNano()/int64(time.Second)) % uint64(n))
		s.round = append(s.round[first:n:n], s.round[:first]...)
	}
	s.once = true
}
