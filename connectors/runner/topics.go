package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors"
)

// topic is what the cluster says about a topic.
type topic struct {
	id         connectors.TopicID
	partitions int
	err        error
}

// describe asks the cluster for topics, now: the client's own look-ups may be
// answered from a cache of some seconds, which is no proof that a topic is still
// the same one.
func describe(ctx context.Context, client *kgo.Client, names []string) (map[string]topic, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("look up topics: %w", err)
	}
	out := make(map[string]topic, len(names))
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic != nil {
			out[*t.Topic] = topic{id: t.TopicID, partitions: len(t.Partitions), err: kerr.ErrorForCode(t.ErrorCode)}
		}
	}
	return out, nil
}

// missing returns an error that names the topics that do not exist. A group
// would wait for them in silence.
func missing(ctx context.Context, client *kgo.Client, names []string) error {
	have, err := describe(ctx, client, names)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		t, ok := have[name]
		switch {
		case !ok, errors.Is(t.err, kerr.UnknownTopicOrPartition):
			errs = append(errs, fmt.Errorf("topic %s does not exist", name))
		case errors.Is(t.err, kerr.InvalidTopicException), errors.Is(t.err, kerr.TopicAuthorizationFailed):
			errs = append(errs, fmt.Errorf("%w: topic %s: %w", connectors.ErrConfig, name, t.err))
		case t.err != nil:
			errs = append(errs, fmt.Errorf("topic %s: %w", name, t.err))
		}
	}
	return errors.Join(errs...)
}

// ensureCompacted makes sure of a compacted topic with exactly one partition.
func ensureCompacted(ctx context.Context, client *kgo.Client, name string) error {
	policy := "compact"
	_, err := kadm.NewClient(client).CreateTopic(ctx, 1, -1, map[string]*string{"cleanup.policy": &policy}, name)
	if err == nil {
		return nil
	}
	if !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	have, err := describe(ctx, client, []string{name})
	if err != nil {
		return err
	}
	switch t := have[name]; {
	case t.err != nil:
		return fmt.Errorf("look up topic %s: %w", name, t.err)
	case t.partitions != 1:
		return fmt.Errorf("%w: topic %s has %d partitions, it must have exactly one", connectors.ErrConfig, name, t.partitions)
	}
	return nil
}
