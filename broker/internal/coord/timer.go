package coord

import "time"

// tickRetry is how long the machine waits after a tick whose output could not be
// appended.
const tickRetry = 500 * time.Millisecond

// longestSleep bounds how long a timer runs. Deadlines are times of day, and timers do
// not follow the clock when it is set: after it was set back and right again, one that
// ran to a deadline of its own would be late by as much, and everything behind it.
const longestSleep = time.Second

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
	now := s.nowMs()
	wait := min(max(ms-now, 0), longestSleep.Milliseconds())
	s.timerMs = now + wait
	s.timer = s.o.Clock.AfterFunc(time.Duration(wait)*time.Millisecond, func() { s.tick(generation) })
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
