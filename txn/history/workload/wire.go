package workload

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire is a network that loses connections. A request that it cuts off has left or not,
// and its answer is gone: clients ask again on another connection, while the first
// request may still be on its way.
type wire struct {
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	oneIn  int         // writes of which one is followed by a cut
	healed atomic.Bool // cuts nothing any more
	cuts   atomic.Int64

	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

// maxCutDelay is how long after a request the connection ends at most: within this
// time a broker on the same machine has answered some and not others.
const maxCutDelay = 4 * time.Millisecond

func newWire(o Options) *wire {
	w := &wire{dial: o.Dial, oneIn: o.CutOneIn, rng: rand.New(rand.NewPCG(o.Seed, 1<<63))}
	if w.dial == nil {
		w.dial = (&net.Dialer{Timeout: 2 * time.Second}).DialContext
	}
	return w
}

// Dial connects.
func (w *wire) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := w.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &line{Conn: c, wire: w}, nil
}

// cut says whether the connection ends after the write that asks, and when.
func (w *wire) cut() (time.Duration, bool) {
	if w.healed.Load() {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(maxCutDelay))), w.rng.IntN(w.oneIn) == 0
}

// line is a connection of a wire.
type line struct {
	net.Conn
	wire *wire
}

func (l *line) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	if after, cut := l.wire.cut(); cut {
		l.wire.cuts.Add(1)
		time.AfterFunc(after, func() {
			_ = l.Conn.Close() // the client may have closed it itself
		})
	}
	return n, err
}
