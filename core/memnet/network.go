package memnet

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// backlog is how many connections may wait for Accept before dialing waits too.
const backlog = 128

// addr is an address of a Network.
type addr string

func (addr) Network() string  { return "mem" }
func (a addr) String() string { return string(a) }

// Network is a network of its own. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	links     map[[2]string]*Link
	port      int // last one given out
}

// New returns an empty network.
func New() *Network {
	return &Network{listeners: map[string]*listener{}, links: map[[2]string]*Link{}}
}

// Listen opens an address, "host:port". Port 0 takes a free one, which Addr of the listener tells.
func (n *Network) Listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "mem", Addr: addr(address), Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if port == "0" {
		for taken := true; taken; {
			n.port = n.port%65535 + 1
			address = net.JoinHostPort(host, strconv.Itoa(n.port))
			_, taken = n.listeners[address]
		}
	}
	if _, taken := n.listeners[address]; taken {
		return nil, &net.OpError{Op: "listen", Net: "mem", Addr: addr(address), Err: syscall.EADDRINUSE}
	}
	l := &listener{n: n, addr: addr(address), queue: make(chan *conn, backlog), done: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// Dial connects to an address of this network; the network's name is not looked at. Its shape is that of net.Dialer's
// DialContext.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.Dialer("").Dial(ctx, network, address)
}

// Dialer dials under a name, so that faults can be told for its connections apart from others'.
func (n *Network) Dialer(name string) Dialer { return Dialer{n, name} }

// Dialer is one who dials; see [Network.Dialer].
type Dialer struct {
	n    *Network
	name string
}

// Dial connects to an address.
func (d Dialer) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	c, err := d.dial(ctx, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "mem", Addr: addr(address), Err: err}
	}
	return c, nil
}

func (d Dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	link := d.n.Link(d.name, address)
	if err := link.ready(ctx); err != nil {
		return nil, err
	}
	d.n.mu.Lock()
	l := d.n.listeners[address]
	d.n.port = d.n.port%65535 + 1
	local := addr(net.JoinHostPort("client-"+d.name, strconv.Itoa(d.n.port)))
	d.n.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	out, in := newPipe(), newPipe()
	client := &conn{link: link, in: in, out: out, local: local, remote: l.addr}
	server := &conn{link: link, in: out, out: in, local: l.addr, remote: local}
	if !link.join(out, in) {
		return nil, syscall.ECONNREFUSED
	}
	select {
	case <-l.done: // checked first: a buffered queue takes connections of a closed listener too
		link.leave(out, in)
		return nil, syscall.ECONNREFUSED
	default:
	}
	select {
	case l.queue <- server:
		select {
		case <-l.done: // closed in between: nobody may ever accept it
			out.reset()
			in.reset()
			link.leave(out, in)
			return nil, syscall.ECONNREFUSED
		default:
			return client, nil
		}
	case <-l.done:
		link.leave(out, in)
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		link.leave(out, in)
		return nil, ctx.Err()
	}
}

// listener is an open address.
type listener struct {
	n     *Network
	addr  addr
	queue chan *conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
	default:
		select {
		case c := <-l.queue:
			return c, nil
		case <-l.done:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: "mem", Addr: l.addr, Err: net.ErrClosed}
}

// Close frees the address and breaks the connections that nobody has accepted.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		delete(l.n.listeners, string(l.addr))
		l.n.mu.Unlock()
		close(l.done)
		for {
			select {
			case c := <-l.queue:
				c.in.reset()
				c.out.reset()
				c.link.leave(c.in, c.out)
			default:
				return
			}
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

// conn is one end of a connection.
type conn struct {
	link          *Link
	in, out       *pipe
	local, remote addr
	once          sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.wrap("read", err)
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b, c.link.weather)
	return n, c.wrap("write", err)
}

// wrap leaves io.EOF as it is, which readers compare with.
func (c *conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite ends the stream to the other side; reading goes on.
func (c *conn) CloseWrite() error {
	c.out.closeWriter()
	return nil
}

func (c *conn) Close() error {
	closed := true
	c.once.Do(func() {
		closed = false
		c.out.closeWriter()
		c.in.closeReader()
		c.link.leave(c.in, nil)
	})
	if closed {
		return c.wrap("close", net.ErrClosed)
	}
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readDeadline, t)
	c.out.setDeadline(&c.out.writeDeadline, t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readDeadline, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeDeadline, t)
	return nil
}
