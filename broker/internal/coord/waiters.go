package coord

import (
	"cmp"
	"slices"
	"sync"
)

// waiters are the callers of a shard that have no answer yet. Its lock is the
// innermost: nothing is called while it is held.
type waiters struct {
	mu   sync.Mutex
	last Token
	m    map[Token]func(any)
}

// add makes a token for reply.
func (w *waiters) add(reply func(any)) Token {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m == nil {
		w.m = map[Token]func(any){}
	}
	w.last++
	w.m[w.last] = reply
	return w.last
}

// deliver answers a caller, unless it has its answer.
func (w *waiters) deliver(to Token, response any) {
	w.mu.Lock()
	reply, ok := w.m[to]
	delete(w.m, to)
	w.mu.Unlock()
	if ok {
		reply(response)
	}
}

// takeAll takes all callers off, in the order in which they came, for the shard to tell them that it is gone.
func (w *waiters) takeAll() []func(any) {
	w.mu.Lock()
	all := w.m
	w.m = nil
	w.mu.Unlock()
	tokens := make([]Token, 0, len(all))
	for to := range all {
		tokens = append(tokens, to)
	}
	slices.SortFunc(tokens, func(a, b Token) int { return cmp.Compare(a, b) })
	replies := make([]func(any), len(tokens))
	for i, to := range tokens {
		replies[i] = all[to]
	}
	return replies
}
