package coord

import "time"

// tickRetry is how long the machine waits after a tick whose output could not be
// appended.
const tickRetry = 500 * time.Millisecond

// arm sets the timer for the machine's next deadline; the caller holds mu. A timer
// that would fire too early is left: it costs one empty tick, where moving it would
// cost every request.
func (s *Shard[M]) arm() {
	ms, ok := s.machine.NextDeadline()
	ms = max(ms, s.pauseMs)
	if !ok || s.timer != nil && s.timerMs <= ms {
		return
	}
	s.armAt(ms)
}

func (s *Shard[M]) armAt(ms int64) {
	if s.timer != nil {
		s.timer.Stop()
	}
	generation := s.generation
	s.timerMs = ms
	wait := time.Duration(ms-s.nowMs()) * time.Millisecond
	s.timer = s.o.Clock.AfterFunc(max(wait, 0), func() { s.tick(generation) })
}

// tick is called by the clock.
func (s *Shard[M]) tick(generation int) {
	s.mu.Lock()
	if s.state != serving || s.generation != generation {
		s.mu.Unlock()
		return
	}
	s.timer = nil
	st := s.begin()
	if s.apply(&st, s.machine.Tick(s.nowMs()), 0) {
		s.pauseMs = 0
		s.resume(&st)
		s.arm()
	} else {
		s.pauseMs = s.nowMs() + tickRetry.Milliseconds()
		s.armAt(s.pauseMs)
	}
	s.end(&st)
	s.mu.Unlock()
	s.release(st)
}
