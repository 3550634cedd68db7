package workload

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire is a bad network between the clients and the brokers: it loses connections,
// delays, and lets requests arrive late. A client that is cut off asks again on another
// connection, while the first request may still be on its way: nothing in TCP keeps it
// from arriving after the second, or after what the client does next (KAFKA-17754).
type wire struct {
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	options Options
	healed  atomic.Bool // does nothing any more

	cuts, delays, lates atomic.Int64

	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

const (
	// maxCutDelay is how long after a request the connection ends at most: within
	// this time a broker on the same machine has answered some and not others.
	maxCutDelay = 4 * time.Millisecond
	// maxDelay is how long a request or an answer is delayed at most.
	maxDelay = 150 * time.Millisecond
	// maxLate is how late a late request arrives at most.
	maxLate = 3 * time.Second
)

// newWire returns nil when the options ask for nothing bad.
func newWire(o Options) *wire {
	if o.CutOneIn == 0 && o.DelayOneIn == 0 && o.LateOneIn == 0 {
		return nil
	}
	w := &wire{dial: o.Dial, options: o, rng: rand.New(rand.NewPCG(o.Seed, 1<<63))}
	if w.dial == nil {
		w.dial = (&net.Dialer{Timeout: 2 * time.Second}).DialContext
	}
	return w
}

// heal ends all that is bad, as far as it has not happened yet.
func (w *wire) heal() {
	if w != nil {
		w.healed.Store(true)
	}
}

// Dial connects.
func (w *wire) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := w.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &line{Conn: c, wire: w, network: network, addr: addr}, nil
}

// happens draws one in n, and a time below the limit; n of 0 is never.
func (w *wire) happens(n int, limit time.Duration) (after time.Duration, yes bool) {
	if n == 0 || w.healed.Load() {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(limit))), w.rng.IntN(n) == 0
}

// delay sleeps for a while, sometimes.
func (w *wire) delay() {
	if d, yes := w.happens(w.options.DelayOneIn, maxDelay); yes {
		w.delays.Add(1)
		time.Sleep(d)
	}
}

// line is a connection of a wire.
type line struct {
	net.Conn
	wire          *wire
	network, addr string
}

func (l *line) Write(b []byte) (int, error) {
	l.wire.delay()
	if after, yes := l.wire.happens(l.wire.options.LateOneIn, maxLate); yes && mayBeLate(b) {
		return l.late(b, after)
	}
	n, err := l.Conn.Write(b)
	if after, cut := l.wire.happens(l.wire.options.CutOneIn, maxCutDelay); cut {
		l.wire.cuts.Add(1)
		time.AfterFunc(after, func() {
			_ = l.Conn.Close() // the client may have closed it itself
		})
	}
	return n, err
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.wire.delay()
	return n, err
}
