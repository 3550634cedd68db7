package runtime

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// An application leaves a description of its topology on the cluster, so that a
// later release which would lose or misread state is refused before it processes
// anything, on whatever machine it starts. It is a record of a topic of its own:
// a state folder is known to one process only, the metadata of offsets is too
// small and gone with the offsets, and a changelog belongs to one store.
//
// The order of a start: look at the changelogs that are there, then read the
// description, compare, create what is missing, write the description, process.
// So whatever is in a changelog was written by a release whose description had been
// written before, and is found by who reads it afterwards.

// ErrStaleState reports a changelog that an earlier release has written and the
// last one did not have: what was processed in between is not in it.
var ErrStaleState = errors.New("streams: a store would continue from an old state")

// described is what the last start has left, none if there was none.
type described struct {
	known bool
	topology.Stored
}

// has reports whether the description speaks of an internal topic.
func (d described) has(topic string) bool {
	return strings.Contains(d.Text, "\n  "+topic+": ")
}

// incarnation is what a state folder remembers of it, as it does of the topics.
func (d described) incarnation() (id [16]byte) {
	sum := sha256.Sum256([]byte(d.Incarnation))
	copy(id[:], sum[:])
	return id
}

// checkUpgrade refuses a start that would lose or misread state.
func (p *preparer) checkUpgrade(ctx context.Context, found map[string]session.Topic) (described, error) {
	if p.app.Text == "" {
		return described{}, nil // made by hand
	}
	filled, err := p.filled(ctx, found)
	if err != nil {
		return described{}, err
	}
	was, err := p.readDescription(ctx)
	if err != nil {
		return was, err
	}
	if was.Incarnation == "" {
		was.Incarnation = rand.Text()
	}
	if !was.known {
		return was, nil
	}
	if was.Reset {
		return was, nil
	}
	if err := topology.CheckUpgradeBut(was.Text, p.app.Text, p.options.Abandon); err != nil {
		return was, fmt.Errorf("streams: this release would lose state of the one that ran last: %w\n"+
			"keep the old names with As; or let go of what they kept with the option Abandon; or begin anew: millrace streams reset %s", err, p.app.AppID)
	}
	var errs []error
	for _, it := range p.app.Internal {
		switch _, there := found[it.Name]; {
		case was.has(it.Name):
		case !there:
			p.log.Info("new in this release, it begins empty", "topic", it.Name)
		case it.Kind == topology.Changelog && filled[it.Name] > 0:
			errs = append(errs, fmt.Errorf("%w: %s has records, but the release that ran last had no such store and has not kept it up to date; delete the topic to begin it empty, or give the store another name",
				ErrStaleState, it.Name))
		}
	}
	return was, errors.Join(errs...)
}

// filled counts the offsets of the changelogs that are there.
func (p *preparer) filled(ctx context.Context, found map[string]session.Topic) (map[string]int64, error) {
	var parts []session.TopicPartition
	for _, it := range p.app.Internal {
		if it.Kind == topology.Changelog {
			for n := range found[it.Name].Partitions {
				parts = append(parts, session.TopicPartition{Topic: it.Name, Partition: int32(n)})
			}
		}
	}
	filled := map[string]int64{}
	if len(parts) == 0 {
		return filled, nil
	}
	ends, err := p.cluster.List(ctx, session.End, parts)
	for part, end := range ends {
		filled[part.Topic] += end
	}
	return filled, err
}

// readDescription reads what the last start has left.
func (p *preparer) readDescription(ctx context.Context) (described, error) {
	name := topology.DescriptionTopic(p.app.AppID)
	topics, err := p.cluster.Topics(ctx, name)
	if err != nil || len(topics[name].Partitions) == 0 {
		return described{}, err
	}
	part := session.TopicPartition{Topic: name}
	start, err := p.cluster.List(ctx, session.Start, []session.TopicPartition{part})
	if err != nil {
		return described{}, err
	}
	end, err := p.cluster.List(ctx, session.StableEnd, []session.TopicPartition{part})
	if err != nil {
		return described{}, err
	}
	reader := p.cluster.NewReader(session.ReaderOptions{})
	defer reader.Close()
	feed := reader.Add(part, start[part])
	var last []byte
	for {
		for r, ok := feed.Head(); ok; r, ok = feed.Head() {
			if string(r.Key) == topology.DescriptionKey {
				last = append(last[:0], r.Value...)
			}
			feed.Pop()
		}
		if feed.Position() >= end[part] {
			break
		}
		if err := feed.Err(); err != nil {
			return described{}, fmt.Errorf("streams: description of %s: %w", p.app.AppID, err)
		}
		select {
		case <-ctx.Done():
			return described{}, ctx.Err()
		case <-reader.Arrived():
		}
	}
	if len(last) == 0 {
		return described{}, nil
	}
	stored, err := topology.ParseStored(last)
	if err != nil {
		return described{}, fmt.Errorf("streams: topic %s: %w", name, err)
	}
	return described{true, stored}, nil
}

// describe leaves the description of this start, if it differs from the last one.
func (p *preparer) describe(ctx context.Context, was described) error {
	if p.app.Text == "" || was.known && was.Text == p.app.Text {
		return nil
	}
	raw, err := topology.Stored{Text: p.app.Text, Picture: p.app.Picture, Incarnation: was.Incarnation}.Encode()
	if err != nil {
		return fmt.Errorf("streams: description of %s: %w", p.app.AppID, err)
	}
	name := topology.DescriptionTopic(p.app.AppID)
	if err := p.createDescription(ctx, name); err != nil {
		if len(p.app.Internal) == 0 { // nothing that a later release could lose
			p.log.Warn("the description of the topology cannot be stored", "topic", name, "error", err)
			return nil
		}
		return fmt.Errorf("streams: create topic %s: %w", name, err)
	}
	r := &kgo.Record{Topic: name, Key: []byte(topology.DescriptionKey), Value: raw}
	if err := p.admin.ProduceSync(ctx, r).FirstErr(); err != nil {
		return fmt.Errorf("streams: write topic %s: %w", name, err)
	}
	return nil
}

func (p *preparer) createDescription(ctx context.Context, name string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, 1, p.options.Replication
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = "cleanup.policy", kmsg.StringPtr("compact")
	rt.Configs = append(rt.Configs, c)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(ctx, p.admin)
	if err != nil {
		return err
	}
	for _, rt := range resp.Topics {
		if err := kerr.ErrorForCode(rt.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return err
		}
	}
	return nil
}
