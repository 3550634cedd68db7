package main

import (
	"sync"
	"time"
)

// stall watches over records that wait for their acknowledgement. The client
// itself tries for ever: it may not give up a sequenced record that may have been
// written. A person at a terminal wants to be told.
type stall struct {
	after time.Duration
	fire  func()

	mu      sync.Mutex // guards what follows
	waiting int
	timer   *time.Timer
}

// watchStall calls fire when records wait and none was acknowledged for so long.
func watchStall(after time.Duration, fire func()) *stall {
	s := &stall{after: after, fire: fire}
	s.timer = time.AfterFunc(after, s.due)
	s.timer.Stop()
	return s
}

// due fires unless the last record was acknowledged while the timer ran out.
func (s *stall) due() {
	s.mu.Lock()
	waiting := s.waiting
	s.mu.Unlock()
	if waiting > 0 {
		s.fire()
	}
}

// sent says that one more record waits.
func (s *stall) sent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting++; s.waiting == 1 {
		s.timer.Reset(s.after)
	}
}

// answered says that one record waits no longer.
func (s *stall) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting--; s.waiting == 0 {
		s.timer.Stop()
		return
	}
	s.timer.Reset(s.after)
}

// stop ends the watch.
func (s *stall) stop() { s.timer.Stop() }
