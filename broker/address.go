package broker

import (
	"context"
	"fmt"
	"net"
	"strconv"
)

// The names of the two listeners.
const (
	memoryListener = "MEMORY"
	socketListener = "PLAINTEXT"
)

// memoryPort is the port of the name that only Dial knows. It means nothing, but
// clients want one.
const memoryPort = 9092

// memoryHost is a name that no resolver knows (RFC 2606 reserves .invalid) and no
// other broker has, so that a client which lost its dialer fails with a clear
// name instead of reaching somebody else.
func memoryHost(clusterID string, nodeID int32) string {
	return fmt.Sprintf("%x-%d.millrace.invalid", clusterID[:min(len(clusterID), 6)], nodeID)
}

// splitAddress splits host:port and checks the port.
func splitAddress(addr string) (host string, port int32, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("port %q is not a number between 1 and 65535", text)
	}
	return host, int32(n), nil
}

// advertised is the address that clients of a listener are told to use. Unless
// configured, clients of the socket are told the address they came in on, which
// works for every interface of a listener on all of them.
func (b *Broker) advertised(listener, local string) (host string, port int32) {
	if listener == memoryListener {
		return b.memoryHost, memoryPort
	}
	if b.config.Advertise != "" {
		host, port, err := splitAddress(b.config.Advertise)
		if err == nil { // checked by Validate
			return host, port
		}
	}
	if tcp, ok := b.Addr().(*net.TCPAddr); ok {
		port = int32(tcp.Port)
	}
	return local, port
}

// Seeds returns the addresses to start a client with. They are known to Dial
// only; clients in other processes use Addr.
func (b *Broker) Seeds() []string {
	return []string{net.JoinHostPort(b.memoryHost, strconv.Itoa(memoryPort))}
}

// Dial connects to this broker in memory, whatever the network says. addr is one
// of Seeds or an address that the broker told a client that came through Dial; any
// other is refused, so that two brokers of one process never meet by mistake.
func (b *Broker) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	return b.memory.Dial(ctx, "memory", addr)
}

// Addr is the address of the socket, with the real port; nil without one.
func (b *Broker) Addr() net.Addr {
	if b.socket == nil {
		return nil
	}
	return b.socket.Addr()
}
