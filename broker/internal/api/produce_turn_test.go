package api

import "testing"

// Requests of one producer take turns in the order they came; producers do not wait for each other.
func TestTurnsKeepEachProducersOrder(t *testing.T) {
	var q turns
	a, b, c, other := new(produce), new(produce), new(produce), new(produce)
	if !q.take(1, a) || q.take(1, b) || !q.take(2, other) || q.take(1, c) {
		t.Fatal("only the first request of each producer has the turn")
	}
	if got := q.pass(2); got != nil {
		t.Fatal("nobody waits behind the other producer")
	}
	for i, want := range []turnTaker{b, c, nil} {
		if got := q.pass(1); got != want {
			t.Fatalf("pass %d went to the wrong request", i)
		}
	}
	if len(q.busy) != 0 {
		t.Fatalf("%d producers are still remembered", len(q.busy))
	}
	if !q.take(1, c) {
		t.Fatal("the turn is free again")
	}
}
