package workload

import (
	"sync"
	"time"

	"github.com/millrace/millrace/txn/history"
)

// recorder writes the history down. Times are those at which it is called, so a start
// must be recorded before its first request leaves and an end after the last answer.
type recorder struct {
	began time.Time

	mu     sync.Mutex
	events []history.Event
	count  Progress
	next   int // the next process
}

// process takes a number for a client that has not been there before.
func (r *recorder) process() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	return r.next - 1
}

func (r *recorder) now() int64 { return int64(time.Since(r.began)) }

func (r *recorder) add(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Time = r.now()
	r.events = append(r.events, e)
	switch e.Type {
	case history.Invoke:
		return
	case history.OK:
		r.count.Done++
	case history.Info:
		r.count.Unknown++
		r.count.Failed++
	case history.Fail:
		r.count.Failed++
	}
	if e.Type != history.OK {
		return
	}
	for i := range e.Steps {
		switch e.Steps[i].Kind {
		case history.StepSend:
			r.count.Acknowledged++
		case history.StepOffsets:
			r.count.Consumed++
		}
	}
}

func (r *recorder) setPhase(p Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count.Phase = p
}

func (r *recorder) progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.count
	p.Elapsed = time.Duration(r.now())
	return p
}

// take ends the recording.
func (r *recorder) take() []history.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}
