package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// ErrMissingTopic reports an internal topic that is gone although the
// application has worked with it before.
var ErrMissingTopic = errors.New("streams: internal topic is missing")

// tombstoneTime is how long changelogs keep tombstones. It is set, not left to
// the cluster's default, because restores rely on it.
const tombstoneTime = 24 * time.Hour

// preparer makes the plan and what it needs on the cluster.
type preparer struct {
	app     *topology.Topology
	cluster *session.Cluster
	admin   *kgo.Client
	folder  *state.Folder // nil without a StateDir
	options Options
	log     *slog.Logger
}

// prepare resolves the topology and creates the internal topics it needs.
func (p *preparer) prepare(ctx context.Context) (*plan, error) {
	id, err := p.cluster.ID(ctx)
	if err != nil {
		return nil, err
	}
	original := p.app
	if err := p.expand(ctx); err != nil {
		return nil, err
	}
	found, err := p.cluster.Topics(ctx, p.names()...)
	if err != nil {
		return nil, err
	}
	if err := p.checkSinks(ctx); err != nil {
		return nil, err
	}
	for _, g := range p.app.Globals {
		if _, ok := found[g.Topic]; !ok {
			return nil, fmt.Errorf("streams: topic %q of the global table %s does not exist", g.Topic, g.Name)
		}
	}
	external := map[string]int32{}
	for _, s := range p.app.Subs {
		for _, src := range s.Sources {
			// What reads by pattern may grow; the topics that it writes do not.
			if t, ok := found[src.Topic]; ok && (!src.Internal || original.Patterns()) {
				external[src.Topic] = int32(len(t.Partitions))
			}
		}
	}
	counts, err := p.app.Resolve(external)
	if err != nil {
		return nil, fmt.Errorf("streams: topology %s: %w", p.app.AppID, err)
	}
	was, err := p.checkUpgrade(ctx, found)
	if err != nil {
		return nil, err
	}
	if err := p.check(ctx, id, found, counts, was); err != nil {
		return nil, err
	}
	if found, err = p.create(ctx, found, counts); err != nil {
		return nil, err
	}
	pl := &plan{app: p.app, counts: counts, topics: found, patterns: patternsOf(original)}
	for _, s := range p.app.Subs {
		pl.units = max(pl.units, counts.Tasks[s.Name])
		for _, src := range s.Sources {
			pl.sources = append(pl.sources, src.Topic)
		}
	}
	slices.Sort(pl.sources)
	pl.sources = slices.Compact(pl.sources)
	if pl.tombstones, err = p.readTombstones(ctx); err != nil {
		return nil, err
	}
	if err := p.checkOffsets(ctx, pl); err != nil {
		return nil, err
	}
	if err := p.describe(ctx, was); err != nil {
		return nil, err
	}
	return pl, p.remember(id, found, was)
}

// names lists every topic that the application reads or logs to.
func (p *preparer) names() []string {
	var names []string
	for _, s := range p.app.Subs {
		for _, src := range s.Sources {
			names = append(names, src.Topic)
		}
		for _, st := range s.Stores {
			if st.Changelog != "" {
				names = append(names, st.Changelog)
			}
		}
	}
	for _, t := range p.app.Internal {
		names = append(names, t.Name)
	}
	for _, g := range p.app.Globals {
		names = append(names, g.Topic)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkSinks wants the topics that the application writes to be there. Nothing
// makes them: how many partitions they need is for their owner to say.
func (p *preparer) checkSinks(ctx context.Context) error {
	var names []string
	for _, s := range p.app.Subs {
		for _, topic := range s.Sinks {
			if !slices.ContainsFunc(p.app.Internal, func(it topology.InternalTopic) bool { return it.Name == topic }) {
				names = append(names, topic)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	found, err := p.cluster.Topics(ctx, names...)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { _, ok := found[n]; return ok })
	if len(names) > 0 {
		return fmt.Errorf("streams: application %s writes topics that do not exist: %s", p.app.AppID, strings.Join(names, ", "))
	}
	return nil
}

// check compares the internal topics with what is needed and with what was
// there before.
func (p *preparer) check(ctx context.Context, cluster string, found map[string]session.Topic, counts topology.Counts, was described) error {
	before := map[string][16]byte{}
	if p.folder != nil {
		before = p.folder.Topics(cluster)
	}
	if name := topology.DescriptionTopic(p.app.AppID); was.known && before[name] != [16]byte{} && before[name] != was.incarnation() {
		before = nil // the application was reset: what this process knew is gone on purpose
	}
	var errs []error
	var missing []topology.InternalTopic
	for _, it := range p.app.Internal {
		t, ok := found[it.Name]
		old, known := before[it.Name]
		switch {
		case !ok && known:
			errs = append(errs, fmt.Errorf("%w: %s was there when this process last ran", ErrMissingTopic, it.Name))
		case !ok && was.known && !was.has(it.Name): // new in this release
		case !ok:
			missing = append(missing, it)
		case known && old != t.ID:
			errs = append(errs, fmt.Errorf("%w: %s was deleted and made anew since this process last ran", ErrMissingTopic, it.Name))
		case int32(len(t.Partitions)) != counts.Topics[it.Name]:
			errs = append(errs, fmt.Errorf("streams: internal topic %s has %d partitions, the topology needs %d", it.Name, len(t.Partitions), counts.Topics[it.Name]))
		}
	}
	used, err := p.used(ctx, missing, found)
	if err != nil {
		return err
	}
	errs = append(errs, used...)
	if len(errs) == 0 {
		return nil
	}
	if p.options.CreateMissing && !slices.ContainsFunc(errs, func(e error) bool { return !errors.Is(e, ErrMissingTopic) }) {
		p.log.Warn("internal topics are made anew, their former contents are lost", "error", errors.Join(errs...))
		return nil
	}
	return errors.Join(errs...)
}

// used finds missing topics whose sub-topology has committed offsets: it has
// processed records, so what it kept was in them.
func (p *preparer) used(ctx context.Context, missing []topology.InternalTopic, found map[string]session.Topic) ([]error, error) {
	var errs []error
	for _, it := range missing {
		i := slices.IndexFunc(p.app.Subs, func(s topology.Sub) bool { return s.Name == it.Sub })
		if i < 0 {
			continue
		}
		var parts []session.TopicPartition
		for _, src := range p.app.Subs[i].Sources {
			for n := range found[src.Topic].Partitions {
				parts = append(parts, session.TopicPartition{Topic: src.Topic, Partition: int32(n)})
			}
		}
		if len(parts) == 0 {
			continue
		}
		offsets, err := p.cluster.CommittedOffsets(ctx, p.app.AppID, parts)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			if offsets[part].Next > 0 {
				errs = append(errs, fmt.Errorf("%w: %s, but group %s has processed %s/%d up to offset %d",
					ErrMissingTopic, it.Name, p.app.AppID, part.Topic, part.Partition, offsets[part].Next))
				break
			}
		}
	}
	return errs, nil
}

// create makes the internal topics that are missing and waits until all topics
// have leaders.
func (p *preparer) create(ctx context.Context, found map[string]session.Topic, counts topology.Counts) (map[string]session.Topic, error) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 30_000
	for _, it := range p.app.Internal {
		if _, ok := found[it.Name]; ok {
			continue
		}
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = it.Name, counts.Topics[it.Name], p.options.Replication
		config := maps.Clone(it.Config)
		if it.Kind == topology.Changelog && config["delete.retention.ms"] == "" {
			config["delete.retention.ms"] = strconv.FormatInt(tombstoneTime.Milliseconds(), 10)
		}
		for _, k := range slices.Sorted(maps.Keys(config)) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, kmsg.StringPtr(config[k])
			rt.Configs = append(rt.Configs, c)
		}
		req.Topics = append(req.Topics, rt)
	}
	if len(req.Topics) > 0 {
		resp, err := req.RequestWith(ctx, p.admin)
		if err != nil {
			return nil, fmt.Errorf("streams: create internal topics: %w", err)
		}
		for _, rt := range resp.Topics {
			err := kerr.ErrorForCode(rt.ErrorCode)
			if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
				detail := ""
				if rt.ErrorMessage != nil {
					detail = ": " + *rt.ErrorMessage
				}
				return nil, fmt.Errorf("streams: create internal topic %s: %w%s", rt.Topic, err, detail)
			}
		}
	}
	return p.await(ctx)
}

// await waits until every topic is there with a leader for each partition.
func (p *preparer) await(ctx context.Context) (map[string]session.Topic, error) {
	names := p.names()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		found, err := p.cluster.Topics(ctx, names...)
		if err != nil {
			return nil, err
		}
		var waiting []string
		for _, n := range names {
			t, ok := found[n]
			if !ok || slices.ContainsFunc(t.Partitions, func(p session.Partition) bool { return p.Leader < 0 }) {
				waiting = append(waiting, n)
			}
		}
		if len(waiting) == 0 {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("streams: no leader yet for %s: %w", strings.Join(waiting, ", "), ctx.Err())
		case <-time.After(pause):
		}
	}
}

// readTombstones asks how long each changelog keeps tombstones, and takes half
// of it: the cleaner's clock and ours need not agree.
func (p *preparer) readTombstones(ctx context.Context) (map[string]time.Duration, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, s := range p.app.Subs {
		for _, st := range s.Stores {
			if st.Changelog == "" {
				continue
			}
			rr := kmsg.NewDescribeConfigsRequestResource()
			rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceTypeTopic, st.Changelog
			rr.ConfigNames = []string{"delete.retention.ms"}
			req.Resources = append(req.Resources, rr)
		}
	}
	kept := map[string]time.Duration{}
	if len(req.Resources) == 0 {
		return kept, nil
	}
	resp, err := req.RequestWith(ctx, p.admin)
	if err != nil {
		return nil, fmt.Errorf("streams: read topic configurations: %w", err)
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return nil, fmt.Errorf("streams: read configuration of topic %s: %w", r.ResourceName, err)
		}
		for _, c := range r.Configs {
			if c.Value == nil {
				continue
			}
			ms, err := strconv.ParseInt(*c.Value, 10, 64)
			if err == nil && ms > 0 && c.Name == "delete.retention.ms" {
				kept[r.ResourceName] = time.Duration(min(ms, int64(100*365*24*time.Hour/time.Millisecond))) * time.Millisecond / 2
			}
		}
	}
	return kept, nil
}

// remember writes down the internal topics, so that the next start notices when
// one is gone.
func (p *preparer) remember(cluster string, found map[string]session.Topic, was described) error {
	if p.folder == nil {
		return nil
	}
	ids := map[string][16]byte{}
	for _, it := range p.app.Internal {
		ids[it.Name] = found[it.Name].ID
	}
	if was.Incarnation != "" {
		ids[topology.DescriptionTopic(p.app.AppID)] = was.incarnation()
	}
	return p.folder.SetTopics(cluster, ids)
}
