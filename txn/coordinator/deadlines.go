package coordinator

import "container/heap"

// deadlines orders the transactional ids that wait for a time by that time, ids
// with the same one by name. Each id is in it at most once and knows its place.
type deadlines []*transaction

func (d deadlines) Len() int { return len(d) }

func (d deadlines) Less(i, j int) bool {
	if d[i].deadlineMs != d[j].deadlineMs {
		return d[i].deadlineMs < d[j].deadlineMs
	}
	return d[i].id < d[j].id
}

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i, j
}

// Push and Pop are for package heap.
func (d *deadlines) Push(x any) {
	t := x.(*transaction)
	t.place = len(*d)
	*d = append(*d, t)
}

// Pop takes the last element off.
func (d *deadlines) Pop() any {
	old := *d
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	t.place = none
	return t
}

// set moves t to the time ms, in or out of the order as need be.
func (d *deadlines) set(t *transaction, ms int64, ok bool) {
	switch {
	case !ok && t.place != none:
		heap.Remove(d, t.place)
	case ok && t.place == none:
		t.deadlineMs = ms
		heap.Push(d, t)
	case ok && t.deadlineMs != ms:
		t.deadlineMs = ms
		heap.Fix(d, t.place)
	}
}
