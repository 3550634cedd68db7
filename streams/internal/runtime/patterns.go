package runtime

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// named are the topics that no pattern matches: those that all members of a group read
// at any time, while one of them may have seen a new topic before another.
func (p *plan) named(topics []string) []string {
	if len(p.patterns) == 0 {
		return topics
	}
	return slices.DeleteFunc(slices.Clone(topics), func(topic string) bool {
		return slices.ContainsFunc(p.patterns, func(re *regexp.Regexp) bool { return re.MatchString(topic) })
	})
}

// expand puts the topics that are there in the place of patterns.
//
// The rule of the layout: task n of a sub-topology reads partition n of each of its
// topics, and there are as many tasks as the topic with the most partitions has. Where
// a changelog keeps their state its partitions say how many tasks there are, for good:
// a topic with more of them is left out, and said so.
func (p *preparer) expand(ctx context.Context) error {
	if !p.app.Patterns() {
		return nil
	}
	found, err := p.cluster.AllTopics(ctx)
	if err != nil {
		return err
	}
	counts := map[string]int32{}
	for name, t := range found {
		counts[name] = int32(len(t.Partitions))
	}
	expanded, leftOut, err := p.app.Expand(counts, func(s *topology.Sub) int32 {
		for _, it := range p.app.Internal {
			if it.Kind == topology.Changelog && it.Sub == s.Name && counts[it.Name] > 0 {
				return counts[it.Name]
			}
		}
		return 0
	})
	if err != nil {
		return fmt.Errorf("streams: topology %s: %w", p.app.AppID, err)
	}
	for _, topic := range leftOut {
		p.log.Error("a topic has more partitions than the state of its pattern has tasks and is left out", "topic", topic, "partitions", counts[topic])
	}
	p.app = expanded
	return nil
}

// follow looks for topics that have come or gone, as long as the job runs, and renews
// the workers when there are some. What cannot be taken in is said, and the job goes on
// with the topics it had.
func (j *Job) follow() {
	if !j.run.app.Patterns() {
		return
	}
	for {
		select {
		case <-j.ctx.Done():
			return
		case <-time.After(j.run.options.LookForTopics):
		}
		if _, g, _ := j.control.wishes(); g != nil {
			continue // it is about to end, with what there was
		}
		old := j.run.planned()
		now, err := j.run.look(j.ctx, old)
		switch {
		case j.ctx.Err() != nil:
			return
		case err != nil:
			j.run.log.Error("topics that match", "error", err)
			continue
		case now == old:
			continue
		}
		j.run.log.Info("topics that match have changed", "read", now.sources)
		j.run.current.Store(now)
		j.renew()
	}
}

// look makes a new plan if other topics match than in the old one.
func (r *run) look(ctx context.Context, old *plan) (*plan, error) {
	cluster, err := session.Connect(ctx, r.clusterOptions(r.app.AppID))
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	p := &preparer{app: r.app, cluster: cluster, admin: r.admin, folder: r.folder, options: r.options, log: r.log}
	if err := p.expand(ctx); err != nil {
		return nil, err
	}
	if sameSources(p.app, old.app) {
		return old, nil
	}
	p.app = r.app
	return p.prepare(ctx)
}

func sameSources(a, b *topology.Topology) bool {
	for i := range a.Subs {
		if !slices.EqualFunc(a.Subs[i].Sources, b.Subs[i].Sources, func(x, y topology.Source) bool { return x.Topic == y.Topic }) {
			return false
		}
	}
	return true
}
