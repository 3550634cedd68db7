package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// DialFunc opens a connection, as [net.Dialer.DialContext] does.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// ClusterOptions say how to reach a cluster.
type ClusterOptions struct {
	// Seeds are host:port of some brokers. Required.
	Seeds []string
	// Dial opens connections; nil is TCP.
	Dial DialFunc
	// ClientID is shown in the broker's logs and quotas. Default "millrace".
	ClientID string
	// Logger gets warnings; nil discards them.
	Logger *slog.Logger
}

// Validate names the field that is wrong.
func (o ClusterOptions) Validate() error {
	if len(o.Seeds) == 0 {
		return errors.New("session: ClusterOptions.Seeds is empty, at least one host:port is needed")
	}
	return nil
}

// Cluster is a connection to a Kafka-protocol cluster. It is safe for concurrent use.
type Cluster struct {
	options ClusterOptions
	client  *kgo.Client
	log     *slog.Logger
	txnV2   bool // transaction.version 2 (KIP-890): partitions and groups join a transaction implicitly

	mu  sync.Mutex
	ids map[string][16]byte // topic ids as first seen: commits for a topic recreated since are refused
}

// txnFeature is the cluster feature that says which transaction protocol runs.
const txnFeature = "transaction.version"

// Connect opens a cluster and asks it which transaction protocol it speaks.
// It goes on trying until ctx ends.
func Connect(ctx context.Context, options ClusterOptions) (*Cluster, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	c := &Cluster{options: options, log: options.Logger, ids: map[string][16]byte{}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if c.client, err = kgo.NewClient(c.clientOptions()...); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	if err := c.detect(ctx); err != nil {
		c.client.Close()
		return nil, fmt.Errorf("session: connect to %v: %w", options.Seeds, err)
	}
	if c.txnV2 {
		return c, nil
	}
	// From these versions on, a request means that its sender speaks transaction
	// version 2, so they must not be used here.
	versions := kversion.Tip()
	versions.SetMaxKeyVersion(int16(kmsg.Produce), 11)
	versions.SetMaxKeyVersion(int16(kmsg.EndTxn), 4)
	versions.SetMaxKeyVersion(int16(kmsg.TxnOffsetCommit), 4)
	c.client.Close()
	if c.client, err = kgo.NewClient(append(c.clientOptions(), kgo.MaxVersions(versions))...); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return c, nil
}

func (c *Cluster) clientOptions() []kgo.Opt {
	id := c.options.ClientID
	if id == "" {
		id = "millrace"
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.options.Seeds...),
		kgo.ClientID(id),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*25*time.Millisecond, 500*time.Millisecond)
		}),
	}
	if c.options.Dial != nil {
		opts = append(opts, kgo.Dialer(c.options.Dial))
	}
	return opts
}

// detect reads the finalized features; a cluster without them speaks version 1.
func (c *Cluster) detect(ctx context.Context) error {
	return c.retry(ctx, func() error {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "millrace", "1"
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		for _, f := range resp.FinalizedFeatures {
			if f.Name == txnFeature {
				c.txnV2 = f.MaxVersionLevel >= 2
			}
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
}

// retry repeats f while its error is transient or a connection could not be
// had, until ctx ends; the last error is returned then.
func (c *Cluster) retry(ctx context.Context, f func() error) error {
	pause := 20 * time.Millisecond
	said := time.Now()
	for {
		err := f()
		if err == nil || ctx.Err() != nil {
			return err
		}
		var ke *kerr.Error
		if errors.As(err, &ke) && !repeatable(ke) {
			return err
		}
		if time.Since(said) > 5*time.Second {
			said = time.Now()
			c.log.Warn("still trying", "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, last: %w", ctx.Err(), err)
		case <-time.After(pause):
			pause = min(2*pause, 500*time.Millisecond)
		}
	}
}

// Close closes all connections.
func (c *Cluster) Close() { c.client.Close() }

// ID is the cluster's id, "" when it has none.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	var id string
	err := c.retry(ctx, func() error {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{}
		resp, err := req.RequestWith(ctx, c.client)
		if err == nil && resp.ClusterID != nil {
			id = *resp.ClusterID
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("session: cluster id: %w", err)
	}
	return id, nil
}

// Topic is what the cluster knows about a topic.
type Topic struct {
	Name       string
	ID         [16]byte
	Partitions []Partition // by number
}

// Partition is the current leadership of a partition.
type Partition struct {
	Leader      int32 // -1: none now
	LeaderEpoch int32
}

// AllTopics reads the metadata of all topics that may be seen.
func (c *Cluster) AllTopics(ctx context.Context) (map[string]Topic, error) {
	found := map[string]Topic{}
	err := c.retry(ctx, func() error {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = nil // all
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		clear(found)
		for i := range resp.Topics {
			if err := addTopic(found, &resp.Topics[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("session: metadata of all topics: %w", err)
	}
	return found, nil
}

// Topics reads metadata. Topics that do not exist are missing from the result;
// none is created.
func (c *Cluster) Topics(ctx context.Context, names ...string) (map[string]Topic, error) {
	found := map[string]Topic{}
	if len(names) == 0 {
		return found, nil
	}
	err := c.retry(ctx, func() error {
		req := kmsg.NewPtrMetadataRequest()
		for _, n := range names {
			t := kmsg.NewMetadataRequestTopic()
			t.Topic = kmsg.StringPtr(n)
			req.Topics = append(req.Topics, t)
		}
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		clear(found)
		for i := range resp.Topics {
			if err := addTopic(found, &resp.Topics[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("session: metadata of %v: %w", names, err)
	}
	return found, nil
}

func addTopic(found map[string]Topic, rt *kmsg.MetadataResponseTopic) error {
	err := kerr.ErrorForCode(rt.ErrorCode)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	if err != nil {
		return err
	}
	if rt.Topic == nil {
		return errors.New("metadata answer without a topic name")
	}
	t := Topic{Name: *rt.Topic, ID: rt.TopicID, Partitions: make([]Partition, len(rt.Partitions))}
	for _, p := range rt.Partitions {
		if p.Partition < 0 || int(p.Partition) >= len(t.Partitions) {
			return fmt.Errorf("metadata of %s: partition %d of %d", t.Name, p.Partition, len(t.Partitions))
		}
		leader := p.Leader
		if p.ErrorCode != 0 {
			leader = -1
		}
		t.Partitions[p.Partition] = Partition{Leader: leader, LeaderEpoch: p.LeaderEpoch}
	}
	found[t.Name] = t
	return nil
}
