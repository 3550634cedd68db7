package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferLimit is how much a pipe holds before writers wait; a buffer starts small and grows up to it.
const (
	bufferLimit = 256 << 10
	bufferStart = 4 << 10
)

// pipe is one direction of a connection. mu guards all; cond wakes everyone after a change that somebody may wait for.
type pipe struct {
	mu   sync.Mutex
	cond sync.Cond

	// A ring: n bytes from start on.
	ring     []byte
	start, n int

	// into is a waiting reader's slice, filled by the next write; got is how much was put there.
	into []byte
	got  int

	late  []parcel // written, not arrived yet: oldest first
	lateN int
	timer *time.Timer

	reading sync.Mutex // one reader at a time, so that into is one slice

	writeEnd bool  // the writer has closed: EOF after what is there
	readEnd  error // what the reader gets at once
	noReader error // what the writer gets: the reader's side is gone

	readDeadline, writeDeadline deadline
}

// parcel is a delayed write.
type parcel struct {
	data []byte
	due  time.Time // zero: not before the link is healed
}

// deadline is a time after which calls fail.
type deadline struct {
	timer  *time.Timer
	passed bool
	epoch  int // of the last setting, so that an old timer changes nothing
}

func newPipe() *pipe {
	p := new(pipe)
	p.cond.L = &p.mu
	return p
}

func (p *pipe) setDeadline(d *deadline, t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.epoch++
	d.passed = false
	if t.IsZero() {
		p.cond.Broadcast()
		return
	}
	if left := time.Until(t); left > 0 {
		epoch := d.epoch
		d.timer = time.AfterFunc(left, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if d.epoch == epoch {
				d.passed = true
				p.cond.Broadcast()
			}
		})
	} else {
		d.passed = true
	}
	p.cond.Broadcast()
}

// read takes what is there, or waits for it.
func (p *pipe) read(b []byte) (int, error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.got > 0:
			n := p.got
			p.got = 0
			return n, nil
		case p.readEnd != nil:
			p.into = nil
			return 0, p.readEnd
		case p.readDeadline.passed:
			p.into = nil
			return 0, os.ErrDeadlineExceeded
		case p.n > 0:
			n := p.take(b)
			p.cond.Broadcast()
			return n, nil
		case p.writeEnd && len(p.late) == 0:
			p.into = nil
			return 0, io.EOF
		case len(b) == 0:
			return 0, nil
		}
		p.into = b
		p.cond.Wait()
	}
}

// take moves bytes out of the ring.
func (p *pipe) take(b []byte) int {
	p.into = nil
	n := copy(b, p.ring[p.start:min(p.start+p.n, len(p.ring))])
	if n < len(b) && n < p.n {
		n += copy(b[n:], p.ring[:p.n-n])
	}
	p.n -= n
	if p.start = (p.start + n) % len(p.ring); p.n == 0 {
		p.start = 0
	}
	return n
}

// put moves bytes to the reader or into the ring, as many as there is room for.
func (p *pipe) put(b []byte) int {
	n := 0
	if p.into != nil && p.n == 0 && p.got == 0 {
		n = copy(p.into, b)
		p.into, p.got = nil, n
	}
	rest := b[n:]
	if len(rest) > 0 && p.n+len(rest) > len(p.ring) && len(p.ring) < bufferLimit {
		p.grow(p.n + len(rest))
	}
	for len(rest) > 0 && p.n < len(p.ring) {
		end := (p.start + p.n) % len(p.ring)
		free := len(p.ring) - end
		if end < p.start {
			free = p.start - end
		}
		m := copy(p.ring[end:end+free], rest)
		p.n += m
		n += m
		rest = rest[m:]
	}
	return n
}

func (p *pipe) grow(want int) {
	size := max(len(p.ring), bufferStart)
	for size < want && size < bufferLimit {
		size *= 2
	}
	ring := make([]byte, size)
	k := copy(ring, p.ring[p.start:min(p.start+p.n, len(p.ring))])
	copy(ring[k:], p.ring[:p.n-k])
	p.ring, p.start = ring, 0
}

// write puts all of b in, waiting for room. weather says how the link is now.
func (p *pipe) write(b []byte, weather func() (delay time.Duration, stalled bool)) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for {
		switch {
		case p.writeEnd:
			return n, net.ErrClosed
		case p.noReader != nil:
			return n, p.noReader
		case p.writeDeadline.passed:
			return n, os.ErrDeadlineExceeded
		case n == len(b):
			return n, nil
		}
		before := n
		if delay, stalled := weather(); delay > 0 || stalled || len(p.late) > 0 {
			n += p.post(b[n:], delay, stalled)
		} else {
			n += p.put(b[n:])
		}
		if n > before {
			p.cond.Broadcast()
		}
		if n < len(b) {
			p.cond.Wait()
		}
	}
}

// post queues bytes that arrive later.
func (p *pipe) post(b []byte, delay time.Duration, stalled bool) int {
	n := min(len(b), bufferLimit-p.lateN)
	if n <= 0 {
		return 0
	}
	one := parcel{data: append([]byte(nil), b[:n]...)}
	if !stalled {
		one.due = time.Now().Add(delay)
	}
	p.late = append(p.late, one)
	p.lateN += n
	p.arm()
	return n
}

// arm sets the timer for the first parcel. The caller holds mu.
func (p *pipe) arm() {
	if len(p.late) == 0 || p.late[0].due.IsZero() || p.timer != nil {
		return
	}
	p.timer = time.AfterFunc(time.Until(p.late[0].due), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timer = nil
		p.deliver(time.Now())
	})
}

// deliver lets arrive what is due, in order. The caller holds mu.
func (p *pipe) deliver(now time.Time) {
	for len(p.late) > 0 {
		one := &p.late[0]
		if one.due.IsZero() || one.due.After(now) {
			break
		}
		n := p.put(one.data)
		p.lateN -= n
		if one.data = one.data[n:]; len(one.data) > 0 {
			// The reader is slow: look again soon. A wait for it here would need a goroutine of its own.
			one.due = now.Add(time.Millisecond)
			break
		}
		p.late = p.late[1:]
	}
	p.arm()
	p.cond.Broadcast()
}

// heal lets stalled parcels go on their way.
func (p *pipe) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range p.late {
		if p.late[i].due.IsZero() {
			p.late[i].due = now
		}
	}
	if p.timer != nil && p.timer.Stop() {
		p.timer = nil
	}
	p.deliver(now)
}

// closeWriter ends the stream behind what was written.
func (p *pipe) closeWriter() {
	p.mu.Lock()
	p.writeEnd = true
	p.cond.Broadcast()
	p.mu.Unlock()
}

// closeReader ends it for the reader at once, and for the writer with EPIPE.
func (p *pipe) closeReader() {
	p.mu.Lock()
	p.readEnd, p.noReader = net.ErrClosed, syscall.EPIPE
	p.ring, p.start, p.n, p.late, p.lateN = nil, 0, 0, nil, 0
	p.cond.Broadcast()
	p.mu.Unlock()
}

// reset breaks the connection: both sides fail, what was under way is lost.
func (p *pipe) reset() {
	p.mu.Lock()
	if p.readEnd == nil {
		p.readEnd = syscall.ECONNRESET
	}
	if p.noReader == nil {
		p.noReader = syscall.ECONNRESET
	}
	p.ring, p.start, p.n, p.late, p.lateN, p.got = nil, 0, 0, nil, 0, 0
	p.cond.Broadcast()
	p.mu.Unlock()
}
