package group

import "container/heap"

// deadlines orders the groups by the time at which they want to be looked at. A
// group's time may be too early, since heartbeats do not move it; then it is
// looked at, and put back.
type deadlines []*group

// set gives a group a new time, or takes it out.
func (d *deadlines) set(g *group, ms int64, ok bool) {
	switch {
	case ok && g.wakeIndex < 0:
		g.wakeMs = ms
		heap.Push((*deadlineHeap)(d), g)
	case ok && g.wakeMs != ms:
		g.wakeMs = ms
		heap.Fix((*deadlineHeap)(d), g.wakeIndex)
	case !ok && g.wakeIndex >= 0:
		heap.Remove((*deadlineHeap)(d), g.wakeIndex)
	}
}

func (d deadlines) first() *group {
	if len(d) == 0 {
		return nil
	}
	return d[0]
}

// deadlineHeap is the heap.Interface of deadlines. Equal times go by group id, so
// that the order does not depend on history.
type deadlineHeap []*group

func (h deadlineHeap) Len() int { return len(h) }

func (h deadlineHeap) Less(i, j int) bool {
	if h[i].wakeMs != h[j].wakeMs {
		return h[i].wakeMs < h[j].wakeMs
	}
	return h[i].id < h[j].id
}

func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].wakeIndex, h[j].wakeIndex = i, j
}

// Push implements heap.Interface.
func (h *deadlineHeap) Push(x any) {
	g := x.(*group)
	g.wakeIndex = len(*h)
	*h = append(*h, g)
}

// Pop implements heap.Interface.
func (h *deadlineHeap) Pop() any {
	old := *h
	g := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	g.wakeIndex = -1
	return g
}
