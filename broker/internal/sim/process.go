package sim

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// process is one run of a client program: it has connections, gets answers and timers, may be paused as by SIGSTOP, and ends
// without a word. What it does is in callbacks, which never run once it has ended.
type process struct {
	net  *network
	w    *world
	name string
	life life
	// until is when a pause ends; what would happen before happens then, in the same order.
	until time.Duration
	inbox []func()
	links [linkCount]link
	next  int32
	asOf  int // how often the power had failed when the broker sent the answer that is looked at
}

// linkKind names a connection of a process. Requests on one keep their order.
type linkKind int

const (
	toCoordinator linkKind = iota
	toData
	toFetch
	toGroup
	linkCount
)

// link is a connection that is opened when it is needed.
type link struct {
	conn  *conn
	calls []*call // sent and not answered, in order
}

// call is a request under way.
type call struct {
	req      kmsg.Request
	number   int32
	done     func(kmsg.Response, error)
	deadline *step
}

var (
	errNoBroker     = errors.New("nobody listens")
	errDisconnected = errors.New("disconnected")
	errNoAnswer     = errors.New("no answer in time")
)

// clientID is what all clients call themselves.
var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("sim"))

// after runs f in the process later.
func (p *process) after(d time.Duration, what string, f func()) *step {
	return p.w.after(d, what, &p.life, func() { p.enter(f) })
}

// enter runs f in the process, after its pause if it has one.
func (p *process) enter(f func()) {
	switch {
	case p.life.over:
	case p.w.now < p.until || len(p.inbox) > 0:
		p.inbox = append(p.inbox, f)
		if len(p.inbox) == 1 {
			p.resume()
		}
	default:
		f()
	}
}

// resume plans the end of the pause.
func (p *process) resume() {
	p.w.after(p.until-p.w.now, "resumed", &p.life, func() {
		if p.w.now < p.until { // paused once more
			p.resume()
			return
		}
		inbox := p.inbox
		p.inbox = nil
		for _, f := range inbox {
			p.enter(f)
		}
	})
}

// pause stops the process for a time.
func (p *process) pause(d time.Duration) {
	p.w.log("%s: paused for %v", p.name, d)
	p.until = max(p.until, p.w.now+d)
}

// kill ends the process. Requests under way still arrive.
func (p *process) kill() {
	p.w.log("%s: killed", p.name)
	p.life.over = true
	for i := range p.links {
		if c := p.links[i].conn; c != nil {
			c.drop()
		}
	}
}

const apiVersions = 18

// patience is how long a client waits for an answer.
const patience = 150 * time.Millisecond

// call sends a request and hands over its answer, or an error when there will be none. Whether the request was carried out is
// then not known. A request without an answer in time takes its connection with it, and with that all requests behind it.
// sent false says that there is no connection, which done hears of later.
func (p *process) call(on linkKind, req kmsg.Request, wait time.Duration, again repeat, done func(kmsg.Response, error)) (sent bool) {
	l := &p.links[on]
	if l.conn == nil || !l.conn.open {
		var c *conn
		c = p.net.dial(
			func(frame []byte, cuts int) { p.enter(func() { p.answered(l, c, frame, cuts) }) },
			func() { p.enter(func() { p.lost(l, c, errDisconnected) }) })
		if c == nil {
			p.after(p.w.between(5*time.Millisecond, 30*time.Millisecond), "refused", func() { done(nil, errNoBroker) })
			return false
		}
		if l.conn != nil {
			p.lost(l, l.conn, errDisconnected)
		}
		l.conn = c
	}
	p.next++
	c := &call{req: req, number: p.next, done: done}
	l.calls = append(l.calls, c)
	conn := l.conn
	c.deadline = p.after(wait+patience, "timeout", func() {
		conn.drop()
		p.lost(l, conn, errNoAnswer)
	})
	p.w.log("%s: conn %d: %d %s", p.name, conn.id, c.number, describe(req))
	conn.send(formatter.AppendRequest(nil, req, c.number)[4:], again)
	return true
}

// tell sends a request that is not answered. It is false where there is no connection.
func (p *process) tell(on linkKind, req kmsg.Request) (sent bool) {
	l := &p.links[on]
	if l.conn == nil || !l.conn.open {
		var c *conn
		c = p.net.dial(
			func([]byte, int) { p.w.fail("%s: an answer that nobody asked for", p.name) },
			func() { p.enter(func() { p.lost(l, c, errDisconnected) }) })
		if c == nil {
			return false
		}
		l.conn = c
	}
	p.next++
	p.w.log("%s: conn %d: %d %s, no answer wanted", p.name, l.conn.id, p.next, describe(req))
	l.conn.send(formatter.AppendRequest(nil, req, p.next)[4:], never)
	return true
}

// answered hands an answer to its call, which is the first one.
func (p *process) answered(l *link, c *conn, frame []byte, cuts int) {
	if l.conn != c || len(l.calls) == 0 {
		return
	}
	first := l.calls[0]
	l.calls = l.calls[1:]
	p.w.cancel(first.deadline)
	number := int32(binary.BigEndian.Uint32(frame))
	if number != first.number {
		p.w.fail("%s: the answer to request %d comes for request %d", p.name, number, first.number)
		return
	}
	resp := first.req.ResponseKind()
	resp.SetVersion(first.req.GetVersion())
	frame = frame[4:]
	if resp.IsFlexible() && resp.Key() != apiVersions && len(frame) > 0 { // whose head never changes, as who asks can not know it
		frame = frame[1:]
	}
	if err := resp.ReadFrom(frame); err != nil {
		p.w.fail("%s: answer to %s: %w", p.name, kmsg.NameForKey(first.req.Key()), err)
		return
	}
	p.asOf = cuts
	first.done(resp, nil)
}

// lost fails all calls of a connection.
func (p *process) lost(l *link, c *conn, err error) {
	if l.conn != c {
		return
	}
	calls := l.calls
	l.conn, l.calls = nil, nil
	for _, one := range calls {
		p.w.cancel(one.deadline)
	}
	for _, one := range calls {
		if !p.life.over {
			one.done(nil, err)
		}
	}
}

// pace bounds the pauses between two things that a client does.
func (p *process) pace() time.Duration { return 8 * p.net.delay }
