package conntest

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/millrace/millrace/connectors"
)

// network is the cluster as one process sees it: the kit can cut it off. Safe
// for concurrent use.
type network struct {
	connectors.Cluster

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

func newNetwork(c connectors.Cluster) *network {
	return &network{Cluster: c, conns: map[net.Conn]struct{}{}}
}

var errCut = errors.New("conntest: this process is cut off from the cluster")

// Dial connects, unless this process is cut off.
func (n *network) Dial(ctx context.Context, proto, addr string) (net.Conn, error) {
	c, err := n.Cluster.Dial(ctx, proto, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		return nil, errors.Join(errCut, c.Close())
	}
	n.conns[c] = struct{}{}
	return &conn{Conn: c, net: n}, nil
}

// cutOff closes all connections and refuses new ones.
func (n *network) cutOff() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = true
	for c := range n.conns {
		_ = c.Close() // being cut off is what the error would say
	}
	clear(n.conns)
}

// restore lets this process connect again.
func (n *network) restore() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = false
}

// conn forgets itself when it is closed.
type conn struct {
	net.Conn
	net *network
}

// Close closes the connection.
func (c *conn) Close() error {
	c.net.mu.Lock()
	delete(c.net.conns, c.Conn)
	c.net.mu.Unlock()
	return c.Conn.Close()
}
