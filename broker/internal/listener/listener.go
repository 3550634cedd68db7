package listener

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Anonymous is the principal of a connection without authentication.
const Anonymous = "User:ANONYMOUS"

// Listener accepts connections and serves them until Close.
type Listener struct {
	name    string
	net     net.Listener
	service Service
	limits  Limits
	logger  *slog.Logger

	mu      sync.Mutex
	conns   map[*conn]struct{} // owned by mu
	closing bool
	running sync.WaitGroup // the acceptor and all connections
}

// Serve starts to accept connections of l in the background. name is told to the
// service with every request.
func Serve(l net.Listener, name string, s Service, limits Limits, logger *slog.Logger) *Listener {
	ln := &Listener{
		name: name, net: l, service: s, limits: limits.WithDefaults(),
		logger: logger, conns: map[*conn]struct{}{},
	}
	ln.running.Go(ln.accept)
	return ln
}

// Addr is the address connections come in on.
func (l *Listener) Addr() net.Addr { return l.net.Addr() }

// acceptRetry is the pause after an Accept that failed for a reason that may
// pass, such as no free file descriptor.
const acceptRetry = 50 * time.Millisecond

func (l *Listener) accept() {
	for {
		nc, err := l.net.Accept()
		if err != nil {
			if l.isClosing() || errors.Is(err, net.ErrClosed) {
				return
			}
			l.logger.Warn("accept failed, trying again", "listener", l.name, "error", err)
			time.Sleep(acceptRetry)
			continue
		}
		l.start(nc)
	}
}

func (l *Listener) isClosing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closing
}

func (l *Listener) start(nc net.Conn) {
	p := &Peer{Principal: Anonymous, Host: "/" + hostOf(nc.RemoteAddr()), Listener: l.name, Local: hostOf(nc.LocalAddr())}
	c := newConn(nc, p, l.service, &l.limits, l.logger)
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		c.shut()
		return
	}
	l.conns[c] = struct{}{}
	l.running.Add(1)
	l.mu.Unlock()
	go func() {
		defer l.running.Done()
		c.run()
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
	}()
}

// Connections is how many are open.
func (l *Listener) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// hostOf is an address without its port.
func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// StopAccepting closes the listening socket; connections go on.
func (l *Listener) StopAccepting() error {
	l.mu.Lock()
	again := l.closing
	l.closing = true
	l.mu.Unlock()
	if again {
		return nil
	}
	return l.net.Close()
}

// drainTime is how long Close waits for peers to take the answers that are ready.
const drainTime = time.Second

// Close ends all connections: no more requests are read, answers that are ready
// leave within a second. It returns when no goroutine of the listener runs any
// more.
func (l *Listener) Close() error {
	err := l.StopAccepting()
	l.mu.Lock()
	for c := range l.conns {
		c.stop()
	}
	l.mu.Unlock()
	late := time.AfterFunc(drainTime, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.conns {
			c.shut() // ends a write that its peer does not take
		}
	})
	defer late.Stop()
	l.running.Wait()
	return err
}
