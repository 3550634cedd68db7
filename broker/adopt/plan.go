package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/broker/internal/metadata"
)

// shareTopic holds the state of share groups, which we do not have.
const shareTopic = "__share_group_state"

// plan is what is to be taken over.
type plan struct {
	o       Options
	folders []*inspect.Data
	cluster *inspect.Cluster
	topics  []topic
	report  Report
}

// topic is one topic and the folders of its partitions, by number.
type topic struct {
	*inspect.Topic
	config     map[string]string
	partitions []*inspect.Partition
	starts     []int64 // the log starts: where DeleteRecords moved them, else where the first segment begins
}

func newPlan(o Options) (*plan, error) {
	p := &plan{o: o}
	for _, from := range o.From {
		d, err := inspect.Open(o.FS, from)
		if err != nil {
			return nil, fmt.Errorf("adopt: %w", err)
		}
		if err := p.add(d); err != nil {
			return nil, err
		}
	}
	if p.cluster == nil {
		return nil, fmt.Errorf("adopt: %s: %w: there is no metadata log", strings.Join(o.From, ", "), ErrNotKafka)
	}
	for _, name := range p.cluster.Names() {
		if name == shareTopic {
			p.leave("topic " + name)
			continue
		}
		if err := p.topic(p.cluster.Topics[name]); err != nil {
			return nil, err
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(p.cluster.Others)) {
		if !own[typ] {
			p.leave(fmt.Sprintf("%d %s", p.cluster.Others[typ], typ))
		}
	}
	return p, nil
}

// own are the records of the metadata log that are about Kafka's controllers and brokers themselves.
var own = map[string]bool{
	"RegisterBrokerRecord": true, "BrokerRegistrationChangeRecord": true, "UnregisterBrokerRecord": true, "FenceBrokerRecord": true,
	"UnfenceBrokerRecord": true, "RegisterControllerRecord": true, "UnregisterControllerRecord": true, "NoOpRecord": true,
	"BeginTransactionRecord": true, "EndTransactionRecord": true, "AbortTransactionRecord": true, "ZkMigrationStateRecord": true,
	"ClearElrRecord": true,
}

func (p *plan) leave(what string) { p.report.LeftOut = append(p.report.LeftOut, what) }

// add takes one of Kafka's folders in.
func (p *plan) add(d *inspect.Data) error {
	node, err := strconv.ParseInt(d.Properties["node.id"], 10, 32)
	id := d.Properties["cluster.id"]
	switch {
	case !d.Whole() || d.Properties == nil || d.Ours() || err != nil || id == "":
		return fmt.Errorf("adopt: %s: %w", d.Dir, ErrNotKafka)
	case p.report.ClusterID != "" && (id != p.report.ClusterID || int32(node) != p.report.NodeID):
		return fmt.Errorf("adopt: %s: %w: it belongs to node %d of cluster %s, %s to node %d of %s",
			d.Dir, ErrNotKafka, node, id, p.folders[0].Dir, p.report.NodeID, p.report.ClusterID)
	}
	if _, err := p.o.FS.Stat(filepath.Join(d.Dir, cleanStop)); errors.Is(err, fs.ErrNotExist) && !p.o.Unclean {
		return fmt.Errorf("adopt: %s has no %s: %w", d.Dir, cleanStop, ErrUnclean)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("adopt: %w", err)
	}
	p.report.ClusterID, p.report.NodeID = id, int32(node)
	p.folders = append(p.folders, d)
	if d.Cluster != nil {
		p.cluster = d.Cluster
	}
	return nil
}

// topic finds the folders of a topic, and the settings that exist here.
func (p *plan) topic(t *inspect.Topic) error {
	out := topic{Topic: t, config: map[string]string{}}
	for i := range int32(len(t.Partitions)) {
		name := fmt.Sprintf("%s-%d", t.Name, i)
		var found *inspect.Partition
		var start int64
		for _, d := range p.folders {
			if f := d.Partition(name); f != nil {
				found, start = f, d.LogStart(name)
			}
		}
		if _, known := t.Partitions[i]; found == nil || !known {
			return fmt.Errorf("adopt: %w: partition %s has no folder", ErrIncomplete, name)
		}
		size, err := found.Bytes()
		if err != nil {
			return err
		}
		out.partitions, out.starts = append(out.partitions, found), append(out.starts, max(start, found.Begins()))
		p.report.Partitions++
		p.report.Bytes += size
	}
	for _, key := range slices.Sorted(maps.Keys(t.Config)) {
		if err := metadata.ValidateTopicConfig(key, t.Config[key]); err != nil {
			p.leave(fmt.Sprintf("topic %s: %s=%s", t.Name, key, t.Config[key]))
			continue
		}
		out.config[key] = t.Config[key]
	}
	p.topics = append(p.topics, out)
	p.report.Topics++
	return nil
}
