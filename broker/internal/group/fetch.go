package group

import (
	"cmp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Fetch is one group of an OffsetFetch request.
type Fetch struct {
	Group string
	// Topics are the wanted partitions. If All is set they are ignored.
	Topics []FetchTopic
	All    bool
	// Stable refuses partitions for which an open transaction has an offset
	// (KIP-447).
	Stable bool
	// TopicID gives the id that a topic has now, zero if there is none.
	TopicID func(topic string) ID
}

// FetchTopic names partitions of a topic.
type FetchTopic struct {
	Topic      string
	Partitions []int32
}

// Fetched is the answer to a Fetch, in its order; for All by topic and partition.
type Fetched []FetchedTopic

// FetchedTopic are the offsets of one topic.
type FetchedTopic struct {
	Topic      string
	Partitions []FetchedPartition
}

// FetchedPartition is one committed offset; -1 if there is none.
type FetchedPartition struct {
	Partition   int32
	Offset      int64
	LeaderEpoch int32
	Metadata    string
	Code        int16
}

// Fetch reads committed offsets. The answer is Fetched.
func (m *Machine) Fetch(nowMs int64, to coord.Token, f *Fetch) coord.Output {
	m.begin(nowMs)
	g := m.groups[f.Group]
	topics := f.Topics
	if f.All {
		topics = everything(g, f)
	}
	answer := make(Fetched, len(topics))
	for i, t := range topics {
		id := f.TopicID(t.Topic)
		answer[i] = FetchedTopic{Topic: t.Topic, Partitions: make([]FetchedPartition, len(t.Partitions))}
		for k, index := range t.Partitions {
			answer[i].Partitions[k] = fetchOne(g, partition{topic: t.Topic, index: index}, id, f.Stable)
		}
	}
	m.reply(to, answer)
	return m.end()
}

func fetchOne(g *group, p partition, id ID, stable bool) FetchedPartition {
	out := FetchedPartition{Partition: p.index, Offset: -1, LeaderEpoch: -1}
	if g == nil {
		return out
	}
	if stable && g.unstable(p, id) {
		out.Code = kerr.UnstableOffsetCommit.Code
		return out
	}
	if c, ok := g.offsets[p]; ok && c.of(id) {
		out.Offset, out.LeaderEpoch, out.Metadata = c.offset, c.leaderEpoch, c.metadata
	}
	return out
}

// everything names all partitions with an offset, of topics that still are what
// they were. Who wants stable offsets is told of those in open transactions too,
// so that it waits for them.
func everything(g *group, f *Fetch) []FetchTopic {
	if g == nil {
		return nil
	}
	var all []partition
	collect := func(offsets map[partition]committed) {
		for p, c := range offsets {
			if c.of(f.TopicID(p.topic)) {
				all = append(all, p)
			}
		}
	}
	collect(g.offsets)
	if f.Stable {
		for _, offsets := range g.open {
			collect(offsets)
		}
	}
	slices.SortFunc(all, partition.compare)
	all = slices.Compact(all)
	var topics []FetchTopic
	for _, p := range all {
		if n := len(topics); n == 0 || topics[n-1].Topic != p.topic {
			topics = append(topics, FetchTopic{Topic: p.topic})
		}
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, p.index)
	}
	return topics
}

func (p partition) compare(o partition) int {
	return cmp.Or(strings.Compare(p.topic, o.topic), cmp.Compare(p.index, o.index))
}
