package stage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/streams"
)

func newPrefix(name string) string { return name + "-" + strings.ToLower(rand.Text()[:8]) + "-" }

// clusterOf is the cluster at these addresses, or a broker in memory.
func clusterOf(ctx context.Context, brokers string) (streams.Cluster, func(), error) {
	if brokers != "" {
		return streams.Brokers(brokers), func() {}, nil
	}
	// Not with the context that ends the job: its last commit needs the broker.
	b, err := broker.Start(context.WithoutCancel(ctx), broker.Config{
		Logger: slog.New(slog.DiscardHandler), GroupInitialRebalanceDelay: time.Millisecond,
	})
	if err != nil {
		return nil, nil, err
	}
	return b, func() { _ = b.Close() }, nil // it is in memory: nothing of it remains
}

func newClient(c streams.Cluster) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
}

// fill makes the topics and writes the inputs.
func (p Play) fill(ctx context.Context, client *kgo.Client, app *streams.App, prefix string) error {
	var names []string
	for _, in := range p.In {
		names = append(names, prefix+in.topic)
	}
	for _, out := range p.Out {
		names = append(names, prefix+out.topic)
	}
	slices.Sort(names)
	names = slices.Compact(names) // a topic may be read and written
	// The records are of a fixed day, which a retention by time may have passed.
	forever := "-1"
	made, err := kadm.NewClient(client).CreateTopics(ctx, 1, -1, map[string]*string{"retention.ms": &forever}, names...)
	if err != nil {
		return fmt.Errorf("topics: %w", err)
	}
	for _, t := range made {
		if t.Err != nil && !errors.Is(t.Err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("topic %s: %w", t.Topic, t.Err)
		}
	}
	for _, in := range p.In {
		records, err := in.encode(app)
		if err != nil {
			return fmt.Errorf("topic %s: %w", in.topic, err)
		}
		for _, r := range records {
			r.Topic = prefix + in.topic
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return fmt.Errorf("topic %s: %w", in.topic, err)
		}
	}
	return nil
}

// show prints results until each topic has had as many as it should.
func (p Play) show(ctx context.Context, client *kgo.Client, app *streams.App, prefix string, w io.Writer) error {
	left, byTopic := map[string]int{}, map[string]Output{}
	for _, o := range p.Out {
		left[prefix+o.topic], byTopic[prefix+o.topic] = o.want, o
		client.AddConsumeTopics(prefix + o.topic)
	}
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped with results missing: %v", left)
		}
		if errs := fetches.Errors(); len(errs) > 0 {
			return fmt.Errorf("topic %s: %w", errs[0].Topic, errs[0].Err)
		}
		for _, r := range fetches.Records() {
			line, err := byTopic[r.Topic].line(app, r)
			if err != nil {
				return fmt.Errorf("topic %s: %w", r.Topic, err)
			}
			if _, err := fmt.Fprintf(w, "%-12s %s\n", byTopic[r.Topic].topic, line); err != nil {
				return err
			}
			if left[r.Topic]--; left[r.Topic] <= 0 {
				delete(left, r.Topic)
			}
		}
	}
	return nil
}
