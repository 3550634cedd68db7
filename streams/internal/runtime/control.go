package runtime

import (
	"context"
	"slices"
	"sync"

	"github.com/millrace/millrace/txn/session"
)

// goal is how far the inputs are to be processed before the run may end.
type goal struct {
	number int // of the owner's goals, from 1
	// stops are offsets that inputs from outside do not go beyond.
	stops map[session.TopicPartition]int64
	// ends are offsets that inputs must have passed, stops included.
	ends map[session.TopicPartition]int64
}

// control is where the owner of a run meets its workers: he leaves wishes, they say
// what they do. Workers look at the wishes between records. Safe for concurrent use.
type control struct {
	listener func(JobState)

	mu      sync.Mutex
	wish    chan struct{} // closed when a wish changes; then there is a new one
	said    chan struct{} // the same for what workers, or the run, say
	paused  bool
	goal    *goal
	workers map[int]WorkerStatus
	phase   JobState // what the workers do not decide; "" while they do
	state   JobState // as the listener was last told

	telling sync.Mutex // held while the listener is called, so that it hears in order
}

func newControl(listener func(JobState)) *control {
	return &control{
		listener: listener, wish: make(chan struct{}), said: make(chan struct{}),
		workers: map[int]WorkerStatus{}, state: JobStarting,
	}
}

// wishes are the owner's; changed is closed when they change.
func (c *control) wishes() (paused bool, g *goal, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused, c.goal, c.wish
}

// ask changes the wishes.
func (c *control) ask(change func(*control)) {
	c.tell(func() {
		change(c)
		close(c.wish)
		c.wish = make(chan struct{})
	})
}

// say notes what a worker says of itself.
func (c *control) say(number int, change func(*WorkerStatus)) {
	c.tell(func() {
		s := c.workers[number]
		s.Number = number
		change(&s)
		c.workers[number] = s
	})
}

// hire adds a worker that has not said anything yet.
func (c *control) hire(number int) {
	c.say(number, func(s *WorkerStatus) { *s = WorkerStatus{Number: number} })
}

// dismiss forgets a worker that has ended.
func (c *control) dismiss(number int) { c.tell(func() { delete(c.workers, number) }) }

// enter notes a state of the run that is not its workers' matter.
func (c *control) enter(phase JobState) {
	c.tell(func() {
		if c.phase != JobStopped && c.phase != JobFailed {
			c.phase = phase
		}
	})
}

// tell makes a change known: to those who wait and, if the state of the run has
// changed, to the listener.
func (c *control) tell(change func()) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.mu.Lock()
	change()
	close(c.said)
	c.said = make(chan struct{})
	now := c.stateLocked()
	changed := now != c.state
	c.state = now
	c.mu.Unlock()
	if changed && c.listener != nil {
		c.listener(now)
	}
}

func (c *control) stateLocked() JobState {
	if c.phase != "" {
		return c.phase
	}
	state := JobRunning
	if c.paused {
		state = JobPaused
	}
	for _, w := range c.workers {
		switch {
		case w.State == "" && c.state == JobStarting:
			return JobStarting
		case w.State == Running && c.paused:
			state = JobRunning // still at it
		case w.State != Running && w.State != Paused:
			return JobRebalancing
		}
	}
	return state
}

// now is the state of the run and of its workers, by number.
func (c *control) now() (JobState, []WorkerStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []WorkerStatus
	for _, w := range c.workers {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b WorkerStatus) int { return a.Number - b.Number })
	return c.state, all
}

// await waits until what the run and its workers say is as wanted; it tells whether
// it came to that before ctx and the run ended.
func (c *control) await(ctx context.Context, over <-chan struct{}, wanted func(JobState, []WorkerStatus) bool) bool {
	for {
		c.mu.Lock()
		said := c.said
		c.mu.Unlock()
		if wanted(c.now()) {
			return true
		}
		select {
		case <-said:
		case <-over:
			return wanted(c.now())
		case <-ctx.Done():
			return false
		}
	}
}
