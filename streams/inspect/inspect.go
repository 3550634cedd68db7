// Package inspect looks at stream applications from outside: by what they have left
// on their cluster, whether or not they run. It lists them, shows their topologies,
// how far behind they are and what their stores hold, and resets them. The commands
// of millrace streams are built on it.
//
// All of it goes by the description that an application leaves in the topic
// <id>-topology when it starts.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// ErrUnknown reports an application of which the cluster has no description.
var ErrUnknown = errors.New("no application of this name has started on the cluster")

// Inspector looks at the applications of one cluster. Safe for concurrent use.
type Inspector struct {
	client  *kgo.Client
	admin   *kadm.Client     // for groups; what it says of topics may be some seconds old
	session *session.Cluster // for topics and offsets
}

// clientID is what a cluster sees of an inspector.
const clientID = "millrace-streams"

// Open connects to a cluster.
func Open(ctx context.Context, cluster streams.Cluster) (*Inspector, error) {
	s, err := session.Connect(ctx, session.ClusterOptions{
		Seeds: cluster.Seeds(), Dial: cluster.Dial, ClientID: clientID, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.Seeds()...), kgo.Dialer(cluster.Dial), kgo.ClientID(clientID))
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("inspect: %w", err)
	}
	return &Inspector{client, kadm.NewClient(client), s}, nil
}

// Close ends the connections.
func (i *Inspector) Close() {
	i.client.Close()
	i.session.Close()
}

// parts lists the partitions of those topics that are there.
func (i *Inspector) parts(ctx context.Context, topics ...string) ([]session.TopicPartition, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	found, err := i.session.Topics(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	var parts []session.TopicPartition
	for _, name := range topics {
		for n := range found[name].Partitions {
			parts = append(parts, session.TopicPartition{Topic: name, Partition: int32(n)})
		}
	}
	return parts, nil
}

// bounds asks for one end of each of some partitions.
func (i *Inspector) bounds(ctx context.Context, bound session.Bound, parts []session.TopicPartition) (map[session.TopicPartition]int64, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	found, err := i.session.List(ctx, bound, parts)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	return found, nil
}

// committed asks for the offsets of an application; -1 is none.
func (i *Inspector) committed(ctx context.Context, id string, parts []session.TopicPartition) (session.Offsets, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	found, err := i.session.CommittedOffsets(ctx, id, parts)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	return found, nil
}

// Application is one application.
type Application struct {
	ID string `json:"id"`
	// State is that of its group: Stable, PreparingRebalance, Empty, Dead …
	State   string   `json:"state"`
	Workers int      `json:"workers"` // of all processes
	Stores  []string `json:"stores,omitempty"`
	// Internal are the topics of its own that are there.
	Internal []string `json:"internalTopics,omitempty"`
	// Missing are those that its description speaks of and that are not there.
	Missing []string `json:"missingTopics,omitempty"`
}

// Live reports whether a process works on the application, or has its place kept.
func (a Application) Live() bool { return a.Workers > 0 }

// Applications lists all applications that have started on the cluster, by name.
func (i *Inspector) Applications(ctx context.Context) ([]Application, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = nil // all
	topics, err := req.RequestWith(ctx, i.client)
	if err != nil {
		return nil, fmt.Errorf("inspect: list topics: %w", err)
	}
	var names []string
	for _, t := range topics.Topics {
		if t.Topic != nil {
			names = append(names, *t.Topic)
		}
	}
	slices.Sort(names)
	var all []Application
	for _, name := range names {
		id, ok := strings.CutSuffix(name, topology.DescriptionTopic(""))
		if !ok {
			continue
		}
		a, err := i.Application(ctx, id)
		if errors.Is(err, ErrUnknown) {
			continue // a topic of somebody's that only has such a name
		}
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// Application looks at one application.
func (i *Inspector) Application(ctx context.Context, id string) (Application, error) {
	d, err := i.Describe(ctx, id)
	if err != nil {
		return Application{}, err
	}
	a := Application{ID: id}
	groups, err := i.admin.DescribeGroups(ctx, id)
	if err != nil {
		return a, fmt.Errorf("inspect: describe group %s: %w", id, err)
	}
	if g, ok := groups[id]; ok && g.Err == nil {
		a.State, a.Workers = g.State, len(g.Members)
	}
	for _, s := range d.stores() {
		a.Stores = append(a.Stores, s.Store)
	}
	internal := d.internal()
	parts, err := i.parts(ctx, internal...)
	if err != nil {
		return a, err
	}
	for _, name := range internal {
		if slices.ContainsFunc(parts, func(p session.TopicPartition) bool { return p.Topic == name }) {
			a.Internal = append(a.Internal, name)
		} else if !d.Reset {
			a.Missing = append(a.Missing, name)
		}
	}
	return a, nil
}

// Description is the topology of an application as it was when it last started.
type Description struct {
	ID   string
	Text string
	// Reset says that the application was reset after its last start: there is no
	// topology.
	Reset  bool
	stored topology.Stored
}

// Mermaid is the topology as a Mermaid flowchart.
func (d Description) Mermaid() string { return d.stored.Picture.Mermaid() }

// DOT is the topology in the language of Graphviz.
func (d Description) DOT() string { return d.stored.Picture.DOT() }

// stores are the nodes that own a store.
func (d Description) stores() []topology.PictureNode {
	var all []topology.PictureNode
	for _, s := range d.stored.Picture.Subs {
		for _, n := range s.Nodes {
			if n.Store != "" {
				all = append(all, n)
			}
		}
	}
	return all
}

// internal are the topics of the application's own, without that of its description.
func (d Description) internal() []string {
	var names []string
	for _, s := range d.stored.Picture.Subs {
		for _, n := range s.Nodes {
			if n.Inner && n.From != "" {
				names = append(names, n.From)
			}
			if n.Logged {
				names = append(names, n.Changelog)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Describe reads the description of an application.
func (i *Inspector) Describe(ctx context.Context, id string) (Description, error) {
	name := topology.DescriptionTopic(id)
	var last []byte
	err := i.read(ctx, name, func(r *session.Record) {
		if string(r.Key) == topology.DescriptionKey {
			last = append(last[:0], r.Value...)
		}
	})
	if err != nil {
		return Description{}, err
	}
	if len(last) == 0 {
		return Description{}, fmt.Errorf("application %s: %w", id, ErrUnknown)
	}
	stored, err := topology.ParseStored(last)
	if err != nil {
		return Description{}, fmt.Errorf("application %s: %w", id, err)
	}
	return Description{ID: id, Text: stored.Text, Reset: stored.Reset, stored: stored}, nil
}
