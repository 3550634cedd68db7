package listener

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// conn is one connection. The reader goroutine alone reads; answers come from
// any goroutine and are queued under mu; one goroutine at a time writes, the
// reader when it has nothing else to do, else the writer.
type conn struct {
	net     net.Conn
	peer    *Peer
	service Service
	limits  *Limits
	logger  *slog.Logger
	cancel  context.CancelFunc
	out     *gather // used by whoever has set writing

	mu      sync.Mutex
	slots   []*slot // in request order; owned by mu
	bytes   int     // sum of the slots' sizes
	writing bool    // somebody has taken answers and is writing them
	ending  bool    // no more requests are read
	broken  bool    // the connection is of no use: answers are dropped
	changed sync.Cond
}

func newConn(nc net.Conn, p *Peer, s Service, l *Limits, logger *slog.Logger) *conn {
	c := &conn{net: nc, peer: p, service: s, limits: l, logger: logger, out: newGather(nc)}
	c.changed.L = &c.mu
	p.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// run serves the connection until it ends.
func (c *conn) run() {
	var writer sync.WaitGroup
	writer.Go(c.write)
	err := c.read()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.logger.Debug("connection ended", "peer", c.peer.Host, "reason", err)
	}
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.changed.Broadcast()
	writer.Wait()
	c.shut()
}

// shut closes the socket and drops what is left; answers that come later are
// dropped as they come.
func (c *conn) shut() {
	c.mu.Lock()
	c.broken, c.ending = true, true
	var left []*Answer // ready but not sent; answer releases what comes later
	for _, s := range c.slots {
		if s.answer != nil {
			left = append(left, s.answer)
		}
	}
	c.slots, c.bytes = nil, 0
	c.mu.Unlock()
	c.changed.Broadcast()
	c.cancel()
	// The peer may be gone already; there is nobody to tell.
	_ = c.net.Close()
	for _, a := range left {
		a.Release()
	}
}

// read is the reader: it returns when the connection is to end.
func (c *conn) read() error {
	r := bufio.NewReaderSize(c.net, 16<<10)
	for {
		if !c.await() {
			return io.EOF
		}
		f, err := c.next(r)
		if err != nil {
			return err
		}
		s := &slot{size: len(f.Bytes), serving: true}
		c.mu.Lock()
		c.slots = append(c.slots, s)
		c.bytes += s.size
		c.mu.Unlock()
		if err := c.service.Serve(c.peer, f, func(a *Answer) { c.answer(s, a) }); err != nil {
			return err
		}
		c.served(s, r.Buffered() > 0)
	}
}

// await holds the reader back while too much is under way. It returns false when
// the connection is to end.
func (c *conn) await() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ending && (len(c.slots) >= c.limits.MaxRequests || c.bytes >= c.limits.MaxBytes) {
		c.changed.Wait()
	}
	return !c.ending
}

// next reads one frame. Waiting for its first byte may take as long as anything
// is under way, else the idle time.
func (c *conn) next(r *bufio.Reader) (*Frame, error) {
	for {
		if err := c.net.SetReadDeadline(time.Now().Add(c.limits.Idle)); err != nil {
			return nil, err
		}
		_, err := r.Peek(1)
		if err == nil {
			return readFrame(r, c.limits)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
		c.mu.Lock()
		idle := len(c.slots) == 0
		c.mu.Unlock()
		if idle {
			return nil, err
		}
	}
}

// answer takes the answer of one request, from any goroutine. It never blocks on
// the network.
func (c *conn) answer(s *slot, a *Answer) {
	c.mu.Lock()
	if s.ready {
		c.mu.Unlock()
		// A fault of a handler, but no reason to take the process down: the peer has
		// its answer.
		c.logger.Error("a request was answered twice; the second answer is dropped", "peer", c.peer.Host)
		if a != nil {
			a.Release()
		}
		return
	}
	s.ready = true
	broken := c.broken
	if !broken {
		s.answer = a
	}
	wake := !s.serving && c.headReady()
	c.mu.Unlock()
	switch {
	case broken && a != nil:
		a.Release()
	case wake:
		c.changed.Broadcast()
	}
}

// served runs in the reader after the service has returned: answers that are
// ready leave at once from the reader, which saves the switch to the writer,
// unless more requests are at hand.
func (c *conn) served(s *slot, more bool) {
	c.mu.Lock()
	s.serving = false
	ready := c.headReady()
	c.mu.Unlock()
	switch {
	case ready && more:
		c.changed.Broadcast()
	case ready:
		c.drain()
	}
}

// write is the writer: it sends what is ready until the connection ends.
func (c *conn) write() {
	for {
		c.mu.Lock()
		for !c.broken && (c.writing || !c.headReady() && !c.ending) {
			c.changed.Wait()
		}
		end := c.broken || !c.headReady()
		c.mu.Unlock()
		if end {
			return
		}
		c.drain()
	}
}

// drain sends answers while there are any at the head of the queue and nobody
// else sends.
func (c *conn) drain() {
	for {
		c.mu.Lock()
		if c.broken || c.writing || !c.headReady() {
			c.mu.Unlock()
			return
		}
		batch := c.take()
		c.mu.Unlock()

		err := c.out.send(batch, c.limits.Write)

		c.mu.Lock()
		c.writing = false
		for _, s := range batch {
			c.bytes -= s.size
		}
		c.mu.Unlock()
		c.changed.Broadcast()
		if err != nil {
			if errors.Is(err, errSection) { // else it is the client's or the network's
				c.logger.Error("a fetch can not be answered to its end: the log file can not be read", "peer", c.peer.Host, "err", err)
			}
			c.shut()
			return
		}
	}
}

func (c *conn) headReady() bool { return len(c.slots) > 0 && c.slots[0].ready }

// maxGather bounds how many answers go out in one write.
const maxGather = 64

// take removes the ready answers at the head of the queue for the caller, who
// holds mu, to send.
func (c *conn) take() []*slot {
	n := 0
	for n < len(c.slots) && n < maxGather && c.slots[n].ready {
		n++
	}
	batch := c.slots[:n:n]
	c.slots = c.slots[n:]
	c.writing = true
	return batch
}

// stop ends the connection from outside: no more requests are read, what is
// ready still leaves.
func (c *conn) stop() {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.changed.Broadcast()
	// Wakes the reader; if the socket is gone the reader is awake already.
	_ = c.net.SetReadDeadline(time.Unix(1, 0))
}
