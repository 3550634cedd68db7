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
	"github.com/twmb/franz-go/pkg/kerr"
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
	return ensureCompacted(ctx, c.admin, c.topic)
}

// missing returns an error that names the topics that do not exist. A group
// would wait for them in silence.
func (c *claimer) missing(ctx context.Context, topics []string) error {
	have, err := c.admin.ListTopics(ctx, topics...)
	if err != nil {
		return fmt.Errorf("look up topics: %w", err)
	}
	var errs []error
	for _, t := range topics {
		d, ok := have[t]
		switch {
		case !ok, errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			errs = append(errs, fmt.Errorf("topic %s does not exist", t))
		case errors.Is(d.Err, kerr.InvalidTopicException), errors.Is(d.Err, kerr.TopicAuthorizationFailed):
			errs = append(errs, fmt.Errorf("%w: topic %s: %w", connectors.ErrConfig, t, d.Err))
		case d.Err != nil:
			errs = append(errs, fmt.Errorf("topic %s: %w", t, d.Err))
		}
	}
	return errors.Join(errs...)
}

// ensureCompacted makes sure of a compacted topic with exactly one partition.
func ensureCompacted(ctx context.Context, admin *kadm.Client, topic string) error {
	policy := "compact"
	res, err := admin.CreateTopic(ctx, 1, -1, map[string]*string{"cleanup.policy": &policy}, topic)
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	if err == nil && res.Err == nil {
		return nil
	}
	have, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return fmt.Errorf("look up topic %s: %w", topic, err)
	}
	d, ok := have[topic]
	if !ok || d.Err != nil {
		return fmt.Errorf("look up topic %s: %w", topic, d.Err)
	}
	if n := len(d.Partitions); n != 1 {
		return fmt.Errorf("%w: topic %s has %d partitions, it must have exactly one", connectors.ErrConfig, topic, n)
	}
	return nil
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
