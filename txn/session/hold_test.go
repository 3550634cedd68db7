package session

import (
	"testing"

	"github.com/millrace/millrace/core/record"
)

// What a reader holds is counted from the answer to the end of the chunk, over all
// feeds, and let go of when a feed is removed or stopped.
func TestReaderCountsWhatItHolds(t *testing.T) {
	t.Parallel()
	r := testReader()
	want := func(what string, n int) {
		t.Helper()
		if got, _ := r.Buffered(); got != n || r.hold.waiting < 0 || r.hold.reading < 0 {
			t.Errorf("%s: %d bytes are held (%+v), want %d", what, got, r.hold, n)
		}
	}
	b := batch(t, 0, 3, -1, record.None)
	a, c := newFeed(r, 0), newFeed(r, 0)
	r.feeds[TopicPartition{Topic: "a"}], r.feeds[TopicPartition{Topic: "c"}] = a, c
	for _, f := range []*Feed{a, c} {
		r.deliver(f, answer(3, nil, b), 1, false)
		r.deliver(f, answer(6, nil, batch(t, 3, 3, -1, record.None)), 2, false)
	}
	want("after two answers each", 4*len(b))
	a.Head()
	want("while the first is read", 4*len(b))
	for range 3 {
		a.Head()
		a.Pop()
	}
	a.Head()
	want("when it is read", 3*len(b))
	if got := drain(a); got != "v3 v4 v5" {
		t.Errorf("then comes %q", got)
	}
	want("when all is read", 2*len(b))
	c.Head()
	c.Stop(2)
	if got := drain(c); got != "v0 v1" || c.Position() != 2 || !c.DryAfter(99) {
		t.Errorf("stopped at 2, it gave %q up to %d, dry %v", got, c.Position(), c.DryAfter(99))
	}
	want("when the other has stopped", 0)
	r.deliver(c, answer(9, nil, batch(t, 6, 3, -1, record.None)), 3, false)
	want("what comes for one that has stopped", 0)
	r.deliver(a, answer(9, nil, batch(t, 6, 3, -1, record.None)), 3, false)
	a.Head()
	r.Remove(a)
	want("after a feed is removed", 0)
	if _, peak := r.Buffered(); peak != 4*len(b) {
		t.Errorf("the peak was %d, want %d", peak, 4*len(b))
	}
}

// Stop before a head that is already at hand, and before anything has come.
func TestFeedStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stop, read int64 // read so many first, look at the next
		want       string
		position   int64
	}{{0, 0, "", 0}, {2, 0, "v0 v1", 2}, {2, 2, "", 2}, {1, 2, "", 2}, {9, 0, "v0 v1 v2", 3}, {3, 1, "v1 v2", 3}} {
		r := testReader()
		f := newFeed(r, 0)
		r.deliver(f, answer(3, nil, batch(t, 0, 3, -1, record.Zstd)), 1, false)
		for range c.read {
			f.Head()
			f.Pop()
		}
		f.Head()
		f.Stop(c.stop)
		if got := drain(f); got != c.want || f.Position() != c.position || f.Err() != nil {
			t.Errorf("%+v: got %q up to %d, %v", c, got, f.Position(), f.Err())
		}
	}
}
