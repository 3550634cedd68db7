package memnet

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Link is the way from a dialer to an address, and all connections on it.
type Link struct {
	mu      sync.Mutex
	pipes   map[*pipe]bool
	cut     bool
	stalled chan struct{} // not nil while stalled; closed when that ends

	// What writers go by, without the lock.
	delay atomic.Int64 // time.Duration
	stall atomic.Bool
}

// Link returns the link from the dialer of a name ("" for [Network.Dial]) to an address. It is there before and after the
// connections on it.
func (n *Network) Link(from, to string) *Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := [2]string{from, to}
	l := n.links[key]
	if l == nil {
		l = &Link{pipes: map[*pipe]bool{}}
		n.links[key] = l
	}
	return l
}

// Cut breaks all connections of the link, whose both ends get ECONNRESET, and refuses new ones until Heal.
func (l *Link) Cut() {
	l.mu.Lock()
	l.cut = true
	pipes := l.pipes
	l.pipes = map[*pipe]bool{}
	l.mu.Unlock()
	for p := range pipes {
		p.reset()
	}
}

// Drop loses all packets from now on: writes succeed until the buffer is full, nothing arrives, dialing waits for its
// context. Heal lets what was written arrive after all, as retransmission does.
func (l *Link) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stalled == nil {
		l.stalled = make(chan struct{})
		l.stall.Store(true)
	}
}

// Delay makes every byte written from now on arrive that much later, in either direction.
func (l *Link) Delay(d time.Duration) { l.delay.Store(int64(d)) }

// Heal ends all faults. Connections that were cut stay broken.
func (l *Link) Heal() {
	l.mu.Lock()
	l.cut = false
	l.delay.Store(0)
	l.stall.Store(false)
	if l.stalled != nil {
		close(l.stalled)
		l.stalled = nil
	}
	pipes := make([]*pipe, 0, len(l.pipes))
	for p := range l.pipes {
		pipes = append(pipes, p)
	}
	l.mu.Unlock()
	for _, p := range pipes {
		p.heal()
	}
}

// ready waits until the link can take a new connection.
func (l *Link) ready(ctx context.Context) error {
	for {
		l.mu.Lock()
		cut, stalled := l.cut, l.stalled
		l.mu.Unlock()
		switch {
		case cut:
			return syscall.ECONNREFUSED
		case ctx.Err() != nil:
			return ctx.Err()
		case stalled == nil:
			return nil
		}
		select {
		case <-stalled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// join takes the pipes of a new connection; false when the link was cut meanwhile.
func (l *Link) join(a, b *pipe) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.pipes[a], l.pipes[b] = true, true
	return true
}

func (l *Link) leave(a, b *pipe) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pipes, a)
	delete(l.pipes, b)
}

// weather says how the link is now.
func (l *Link) weather() (delay time.Duration, stalled bool) {
	return time.Duration(l.delay.Load()), l.stall.Load()
}
