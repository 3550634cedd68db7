package runner

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
)

// dial returns the client options that reach a cluster.
func dial(c connectors.Cluster, clientID string) []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial), kgo.ClientID(clientID)}
}

// claimer writes claim records. Safe for concurrent use by all tasks of a
// connector; it owns its client, which also serves the admin calls.
type claimer struct {
	client *kgo.Client
	admin  *kadm.Client
	topic  string
	name   string // of the sink: the record key, so that compaction keeps the last claim of each
}

// claimRecord is the value of a claim, for whoever reads the topic; only the
// record's offset decides anything.
type claimRecord struct {
	Owner      string   `json:"owner"`
	Client     string   `json:"client"`
	Partitions []string `json:"partitions"`
}

func newClaimer(c connectors.Cluster, name, topic string) (*claimer, error) {
	client, err := kgo.NewClient(append(dial(c, "millrace-connector-"+name),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.RecordDeliveryTimeout(10*time.Second),
		kgo.UnknownTopicRetries(5),
	)...)
	if err != nil {
		return nil, fmt.Errorf("%w: client: %w", connectors.ErrConfig, err)
	}
	return &claimer{client: client, admin: kadm.NewClient(client), topic: topic, name: name}, nil
}

// ensure creates the topic of claims if needed. It must have one partition: in
// two, offsets would not be ordered.
func (c *claimer) ensure(ctx context.Context) error {
	return ensureCompacted(ctx, c.client, c.topic)
}

// claim writes one claim for the partitions and returns it as a fence. An error
// means that the claim is not confirmed, even if it may stand in the log: the
// caller claims again, under another owner id, and gets a greater offset.
func (c *claimer) claim(ctx context.Context, client string, tps []connectors.TP) (connectors.Fence, error) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails, see crypto/rand
	body := claimRecord{Owner: hex.EncodeToString(id[:]), Client: client}
	for _, tp := range tps {
		body.Partitions = append(body.Partitions, tp.String())
	}
	value, err := json.Marshal(body)
	if err != nil {
		return connectors.Fence{}, fmt.Errorf("claim: %w", err)
	}
	r := &kgo.Record{Topic: c.topic, Key: []byte(c.name), Value: value}
	if err := c.client.ProduceSync(ctx, r).FirstErr(); err != nil {
		// The topic may be gone or another one: look it up anew next time.
		c.client.PurgeTopicsFromProducing(c.topic)
		if e := c.ensure(ctx); e != nil {
			err = errors.Join(err, e)
		}
		return connectors.Fence{}, fmt.Errorf("claim in topic %s: %w", c.topic, err)
	}
	if r.Offset < 0 {
		return connectors.Fence{}, fmt.Errorf("claim in topic %s: the cluster did not tell its offset", c.topic)
	}
	return connectors.Fence{Epoch: r.Offset, Owner: body.Owner}, nil
}

func (c *claimer) close() { c.client.Close() }
