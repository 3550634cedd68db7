package main

import (
	"context"
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

// serveKfake is the in-memory broker of the ceiling rows; it runs until the context ends.
func serveKfake(ctx context.Context, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(n))
	if err != nil {
		return err
	}
	defer c.Close()
	<-ctx.Done()
	return nil
}
