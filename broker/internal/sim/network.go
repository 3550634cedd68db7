package sim

import (
	"context"
	"hash/crc32"
	"time"

	"github.com/millrace/millrace/broker/internal/listener"
)

// network carries frames between clients and the node. A connection keeps their order; between connections there is none.
type network struct {
	w     *world
	n     *node
	conns []*conn // open ones
	last  int
	// delay bounds the latency, and trouble says how often something goes wrong with a frame: once in so many, 0 for never.
	delay   time.Duration
	trouble int
}

// conn is one connection, as seen by both sides.
type conn struct {
	id   int
	net  *network
	peer *listener.Peer
	open bool
	// There is no later frame under way than these.
	toNode, toClient time.Duration
	lost             time.Duration                // once it is closed: what arrives from then on does not
	slots            []*slot                      // requests at the node, in their order
	receive          func(frame []byte, cuts int) // cuts is how often the power had failed when the broker answered
	closed           func()
}

// slot is a request that the node has and has not answered.
type slot struct {
	answer []byte
	ready  bool
}

// dial opens a connection; nil when nobody listens. closed is called when the other side, or the network, ends it.
func (t *network) dial(receive func(frame []byte, cuts int), closed func()) *conn {
	if t.n.api == nil {
		return nil
	}
	t.last++
	c := &conn{
		id: t.last, net: t, open: true, receive: receive, closed: closed,
		peer: listener.NewPeer(context.Background(), listener.Peer{Principal: listener.Anonymous, Host: "/client", Listener: "MEMORY"}),
	}
	t.conns = append(t.conns, c)
	return c
}

func (t *network) latency() time.Duration { return t.w.between(20*time.Microsecond, t.delay) }

// repeat says whether the network may deliver a request twice, as when a client has sent it again on another connection.
type repeat int

const (
	never repeat = iota
	// sameRun is behind the first time, and to the same run of the broker: what its connection brought before was there then.
	sameRun
	always
)

// send gives a frame, without its length, to the network.
func (c *conn) send(frame []byte, again repeat) {
	t := c.net
	if !c.open {
		return
	}
	arrived := false
	c.toNode = max(c.toNode, t.w.now+t.latency())
	t.w.after(c.toNode-t.w.now, "request", nil, func() { arrived = c.arrive(frame, true) })
	if t.trouble == 0 || !t.w.chance(t.trouble) {
		return
	}
	switch what := t.w.rng.IntN(3); {
	case what == 0:
		c.cut("by the network")
	case what == 1 && again != never:
		t.w.see("a request twice")
		late := t.w.between(0, 40*t.delay)
		t.w.log("conn %d: a request comes again after %v", c.id, late)
		of := t.n.life
		if again == always {
			of = nil
		}
		t.w.after(late, "repeat", of, func() {
			if arrived || again == always {
				c.arrive(frame, false)
			}
		})
	default: // the other direction only: the request is served, the answer never seen
		t.w.after(t.latency(), "cut", nil, func() { c.cut("by the network") })
	}
}

// arrive gives a frame to the broker. The frame is copied, for the broker writes into it. A frame of a connection that was cut
// may arrive all the same; its answer has nowhere to go. It tells whether the frame arrived.
func (c *conn) arrive(frame []byte, own bool) bool {
	server := c.net.n.api
	if server == nil || c.net.n.disk.off || own && !c.open && c.net.w.now >= c.lost {
		return false
	}
	of, s := c.net.n.life, &slot{}
	c.net.w.log("conn %d: request of %d bytes arrives", c.id, len(frame))
	if own && c.open {
		c.slots = append(c.slots, s)
	}
	err := server.Serve(c.peer, &listener.Frame{Bytes: append([]byte(nil), frame...)}, func(a *listener.Answer) {
		if of.over || c.net.n.disk.off { // a process that is gone sends nothing
			return
		}
		c.answer(s, a)
	})
	if err != nil {
		c.net.w.fail("the broker does not understand its own clients: %w", err)
	}
	return true
}

// answer takes the answer of a request and sends what is ready, in the order of the requests.
func (c *conn) answer(s *slot, a *listener.Answer) {
	w := c.net.w
	if s.ready {
		w.fail("conn %d: a request is answered twice", c.id)
		return
	}
	s.ready = true
	if a != nil {
		bytes, err := a.AppendTo(nil)
		if a.Close || err != nil {
			w.log("conn %d: closed by the broker: %v", c.id, err)
			c.cut("by the broker")
		}
		s.answer = bytes
		w.log("conn %d: answer of %d bytes, sum %08x", c.id, len(bytes), crc32.ChecksumIEEE(bytes))
		a.Release()
	}
	for c.open && len(c.slots) > 0 && c.slots[0].ready {
		out := c.slots[0].answer
		c.slots = c.slots[1:]
		if out == nil {
			continue
		}
		c.toClient = max(c.toClient, w.now+c.net.latency())
		cuts := c.net.n.cuts
		w.after(c.toClient-w.now, "answer", nil, func() {
			if c.open {
				c.receive(out[4:], cuts)
			}
		})
	}
}

// cut ends the connection. Requests under way may still arrive.
func (c *conn) cut(why string) {
	if !c.open {
		return
	}
	c.net.w.log("conn %d: cut %s", c.id, why)
	c.drop()
	c.net.w.after(c.net.latency(), "closed", nil, c.closed)
}

// drop is the end of the connection as its client makes it.
func (c *conn) drop() {
	if !c.open {
		return
	}
	c.open, c.slots, c.lost = false, nil, c.net.w.now+time.Duration(c.net.w.rng.Int64N(int64(max(c.toNode-c.net.w.now, 0))+2))
	for i, have := range c.net.conns {
		if have == c {
			c.net.conns = append(c.net.conns[:i], c.net.conns[i+1:]...)
			break
		}
	}
}

// cutAll ends all connections: the node is gone.
func (t *network) cutAll() {
	for len(t.conns) > 0 {
		t.conns[0].cut("as the broker is gone")
	}
}
