package api

import "sync/atomic"

// gathering calls a function when all parts of an answer are there. Parts may come at once or on any goroutine, each fills what is
// its own.
type gathering struct {
	left atomic.Int64
	then func()
}

// newGathering waits for so many parts, and for who asks for them: he is done when he has asked for all.
func newGathering(parts int, then func()) *gathering {
	g := &gathering{then: then}
	g.left.Store(int64(parts) + 1)
	return g
}

func (g *gathering) done() {
	if g.left.Add(-1) == 0 {
		g.then()
	}
}
