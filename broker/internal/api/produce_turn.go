package api

import "sync"

// turns keeps the transactional batches of one producer in the order they came in. A request that has to ask the
// transaction coordinator first is appended later, from another goroutine; the next request of the same producer, which
// its client has sent without waiting, must not overtake it, or its sequence numbers would be out of order. So a
// transactional request takes its producer's turn before it looks at a partition, and passes it on when its batches are
// appended or refused. Waiting for durability is not part of a turn.
//
// The mutex guards the map only; nothing is called under it.
type turns struct {
	mu   sync.Mutex
	busy map[int64][]turnTaker // producer ids whose turn is taken, with the requests behind it
}

// turnTaker is a request that has, or waits for, its producer's turn.
type turnTaker interface{ takeTurn() }

// take gives p the turn of a producer, or puts it behind the one that has it.
func (t *turns) take(producer int64, p turnTaker) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if behind, taken := t.busy[producer]; taken {
		t.busy[producer] = append(behind, p)
		return false
	}
	if t.busy == nil {
		t.busy = map[int64][]turnTaker{}
	}
	t.busy[producer] = nil
	return true
}

// pass ends the turn and returns the request that has it now, nil if none waits.
func (t *turns) pass(producer int64) turnTaker {
	t.mu.Lock()
	defer t.mu.Unlock()
	behind := t.busy[producer]
	if len(behind) == 0 {
		delete(t.busy, producer)
		return nil
	}
	t.busy[producer] = behind[1:]
	return behind[0]
}
