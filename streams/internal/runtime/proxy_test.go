package runtime_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// machine is a broker on a disk in memory, reached through a TCP proxy: its
// address stays the same while the broker restarts or loses its power, and the
// way to it can be cut and held up. Processes of their own can use it.
type machine struct {
	tcp
	node   *brokertest.Node
	listen net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool
	held  chan struct{} // not nil while packets are held up; closed after that
}

func newMachine(t testing.TB, more ...brokertest.Option) *machine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{tcp: tcp{l.Addr().String()}, listen: l, conns: map[net.Conn]bool{}}
	m.node = brokertest.StartNode(t, append([]brokertest.Option{brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) {
		c.Advertise, c.GroupInitialRebalanceDelay = l.Addr().String(), time.Millisecond
	})}, more...)...)
	var done sync.WaitGroup
	done.Go(func() { m.accept(&done) })
	t.Cleanup(func() {
		m.release()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		m.cut(func() bool { return true })
		done.Wait()
	})
	return m
}

func (m *machine) accept(done *sync.WaitGroup) {
	for {
		c, err := m.listen.Accept()
		if err != nil {
			return
		}
		var d net.Dialer
		b, err := d.DialContext(context.Background(), "tcp", m.node.Broker().Addr().String())
		if err != nil {
			_ = c.Close() // refused, as the broker behind it does
			continue
		}
		m.mu.Lock()
		m.conns[c], m.conns[b] = true, true
		m.mu.Unlock()
		for _, way := range [][2]net.Conn{{c, b}, {b, c}} {
			done.Go(func() { m.pass(way[0], way[1]) })
		}
	}
}

// pass copies until one side is closed, then closes both.
func (m *machine) pass(from, to net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		m.mu.Lock()
		held := m.held
		m.mu.Unlock()
		if held != nil {
			<-held
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = errors.Join(err, werr)
			}
		}
		if err != nil {
			break
		}
	}
	m.mu.Lock()
	delete(m.conns, from)
	delete(m.conns, to)
	m.mu.Unlock()
	for _, c := range []io.Closer{from, to} {
		_ = c.Close() // the other direction may have closed it
	}
}

// cut breaks the connections that which chooses. What a client has sent may
// have arrived, and its answer is lost.
func (m *machine) cut(which func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.conns {
		if which() {
			_ = c.Close() // it may be broken already
		}
	}
}

// hold delays all packets until release.
func (m *machine) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil {
		m.held = make(chan struct{})
	}
}

func (m *machine) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held != nil {
		close(m.held)
		m.held = nil
	}
}
