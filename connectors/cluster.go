package connectors

import (
	"context"
	"net"
	"slices"
)

// Cluster is how a connector's runner reaches a cluster that speaks the Kafka
// protocol. An embedded broker satisfies it; [Brokers] makes one from addresses.
type Cluster interface {
	// Seeds returns host:port addresses from which the cluster's metadata can
	// be had.
	Seeds() []string
	// Dial opens a connection to an address from Seeds or from the metadata.
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// Brokers returns the cluster that can be reached over TCP at the given
// host:port addresses.
func Brokers(addr ...string) Cluster {
	return tcpCluster{seeds: slices.Clone(addr)}
}

type tcpCluster struct {
	seeds  []string
	dialer net.Dialer
}

func (c tcpCluster) Seeds() []string { return slices.Clone(c.seeds) }

func (c tcpCluster) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.dialer.DialContext(ctx, network, addr)
}
