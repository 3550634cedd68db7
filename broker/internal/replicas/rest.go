package replicas

import (
	"sync"
	"time"

	"github.com/millrace/millrace/core/clock"
)

const (
	// restEvery is how often idle log files are looked for, while there are too many.
	restEvery = time.Second
	// restSyncs is how many partitions one look may have synced so that their files can be closed: those that wait for the disk
	// meanwhile should not notice.
	restSyncs = 256
)

// Rest closes log files that nobody uses, if many are open. It is called every now and then; the time between two calls is what
// idle means.
func (m *Manager) Rest() {
	m.o.Files.Turn()
	if !m.o.Files.Crowded() {
		return
	}
	asked := 0
	for p := range m.All() {
		if p.Rest() {
			if asked++; asked == restSyncs {
				return
			}
		}
	}
}

// Resting calls Rest again and again.
type Resting struct {
	m     *Manager
	every time.Duration

	mu     sync.Mutex // held during a call
	timer  clock.Timer
	closed bool
}

// StartResting begins to call Rest; 0 is every second. Options.Files must be set.
func (m *Manager) StartResting(every time.Duration) *Resting {
	if every == 0 {
		every = restEvery
	}
	r := &Resting{m: m, every: every}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set()
	return r
}

// set winds the timer up; mu is held.
func (r *Resting) set() { r.timer = r.m.o.Clock.AfterFunc(r.every, r.round) }

func (r *Resting) round() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.m.Rest()
	r.set()
}

// Close ends it, after the call that is under way.
func (r *Resting) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.timer.Stop()
	return nil
}
