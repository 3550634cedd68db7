package partition

import "sync"

// watchers are those who want to hear of every advance of a watermark.
type watchers struct {
	mu   sync.Mutex
	list []*watcher

	telling sync.Mutex // one notifier at a time
	buffer  []*watcher // its own
}

type watcher struct {
	fn    func()
	index int // in list; -1 when it has left
}

func (w *watchers) add(fn func()) (cancel func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &watcher{fn, len(w.list)}
	w.list = append(w.list, one)
	return func() { w.remove(one) }
}

func (w *watchers) remove(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.index < 0 {
		return
	}
	last := len(w.list) - 1
	w.list[one.index] = w.list[last]
	w.list[one.index].index = one.index
	w.list[last] = nil
	w.list = w.list[:last]
	one.index = -1
}

// notify calls everyone.
func (w *watchers) notify() {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.mu.Lock()
	all := append(w.buffer[:0], w.list...)
	w.mu.Unlock()
	for i, one := range all {
		one.fn()
		all[i] = nil
	}
	w.buffer = all
}
