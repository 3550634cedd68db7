package onsarama

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace/millrace/txn/session"
)

// config is Sarama's configuration for a session.
func config(o session.Options) *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.ClientID = o.ClientID
	if cfg.ClientID == "" {
		cfg.ClientID = "millrace"
	}
	if o.Dial != nil {
		cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, dialer{o.Dial}
	}
	cfg.Metadata.Retry.Max, cfg.Metadata.Retry.Backoff = 100, 50*time.Millisecond
	cfg.Consumer.Offsets.AutoCommit.Enable = false
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	if o.FromLatest {
		cfg.Consumer.Offsets.Initial = sarama.OffsetNewest
	}
	if !o.Uncommitted {
		cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	cfg.Consumer.MaxWaitTime, cfg.Consumer.Retry.Backoff = 100*time.Millisecond, 50*time.Millisecond
	cfg.Consumer.Group.InstanceId = o.Instance
	cfg.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	cfg.Consumer.Group.Rebalance.Retry.Backoff = 50 * time.Millisecond
	cfg.Consumer.Group.Session.Timeout = orElse(o.SessionTimeout, 45*time.Second)
	cfg.Consumer.Group.Rebalance.Timeout = orElse(o.RebalanceTimeout, time.Minute)
	cfg.Consumer.Group.Heartbeat.Interval = min(orElse(o.Heartbeat, 3*time.Second), cfg.Consumer.Group.Session.Timeout/3)
	return cfg
}

func orElse(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

// dialer is a session's Dial as Sarama wants it, which knows no context.
type dialer struct{ dial session.DialFunc }

const dialLimit = 10 * time.Second

func sortedTopics(o session.Options) []string {
	topics := slices.Clone(o.Topics)
	slices.Sort(topics)
	return topics
}

func (d dialer) Dial(network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	defer cancel()
	return d.dial(ctx, network, addr)
}

// insist repeats what fails until ctx ends.
func insist(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, last: %w", ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
