package clients

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/core/seedtest"
)

// rough is a line that is slow and loses connections, or is dead: then nothing gets through.
type rough struct {
	b *broker.Broker

	mu    sync.Mutex // guards what follows
	rng   *rand.Rand
	oneIn int // writes of which one is the last of its connection; 0 cuts none
	dead  bool
	cuts  int
	conns map[*roughConn]bool
}

func newRough(t *testing.T, b *broker.Broker, oneIn int) *rough {
	t.Helper()
	seed := seedtest.New(t)
	return &rough{b: b, rng: rand.New(rand.NewPCG(seed, 0)), oneIn: oneIn, conns: map[*roughConn]bool{}}
}

var errLine = errors.New("the line is dead")

func (r *rough) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	r.mu.Lock()
	dead := r.dead
	r.mu.Unlock()
	if dead {
		return nil, errLine
	}
	c, err := r.b.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	rc := &roughConn{c, r}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[rc] = true
	return rc, nil
}

// Dial is for Sarama, which knows no context.
func (r *rough) Dial(network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.DialContext(ctx, network, addr)
}

// setDead cuts all connections and lets none through, or lets them through again.
func (r *rough) setDead(dead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = dead
	for c := range r.conns {
		if dead {
			_ = c.Conn.Close() // its user learns of it
		}
	}
	clear(r.conns)
}

// smooth ends the cuts, and says how many there were.
func (r *rough) smooth() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.oneIn = 0
	return r.cuts
}

// chance is how long a step is delayed, and whether the connection ends after it.
func (r *rough) chance() (delay time.Duration, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delay = time.Duration(r.rng.Int64N(int64(2 * time.Millisecond)))
	if cut = r.oneIn > 0 && r.rng.IntN(r.oneIn) == 0; cut {
		r.cuts++
	}
	return delay, cut
}

type roughConn struct {
	net.Conn
	r *rough
}

func (c *roughConn) Write(b []byte) (int, error) {
	delay, cut := c.r.chance()
	n, err := c.Conn.Write(b)
	if cut {
		time.AfterFunc(delay, func() { _ = c.Conn.Close() }) // before or after the answer, as it happens
	}
	return n, err
}

func (c *roughConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	delay, _ := c.r.chance()
	time.Sleep(delay) // the line is slow: that is what it is for
	return n, err
}
