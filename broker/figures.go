package broker

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/txn/coordinator"
)

// PartitionFigures is what a monitoring system may want to know of a partition.
type PartitionFigures struct {
	Topic     string
	Partition int32
	// LogStart to LogEnd are offsets: the first record, the end of what is committed, the end of what is acknowledged, and the
	// end of the log.
	LogStart, LastStable, HighWatermark, LogEnd int64
	Bytes                                       int64
	Segments                                    int
	OpenTransactions                            int
}

// Partitions tells the figures of all partitions that are served, by topic name. It looks at each partition on its own, so
// figures of different ones are not of one moment.
func (b *Broker) Partitions() []PartitionFigures {
	var all []PartitionFigures
	for p := range b.replicas.All() {
		topic, index := splitName(p.Name())
		m := p.Marks()
		f := PartitionFigures{
			Topic: topic, Partition: index,
			LogStart: m.LogStart, LastStable: m.LastStable, HighWatermark: m.HighWatermark, LogEnd: m.LogEnd,
		}
		f.Bytes, f.Segments = p.Size()
		for _, s := range p.Producers() {
			if s.TxnFirstOffset >= 0 {
				f.OpenTransactions++
			}
		}
		all = append(all, f)
	}
	return all
}

// splitName takes topic-partition apart.
func splitName(name string) (topic string, index int32) {
	i := strings.LastIndexByte(name, '-')
	n, _ := strconv.ParseInt(name[i+1:], 10, 32) // the partition's own name, which ends in its number
	return name[:max(i, 0)], int32(n)
}

// Requests tells how many requests of each API came in since the start.
func (b *Broker) Requests() map[string]int64 {
	out := map[string]int64{}
	b.server.Served(func(name string, n int64) { out[name] = n })
	return out
}

// Connections is how many clients are connected, over the network and in this process.
func (b *Broker) Connections() int {
	n := 0
	for _, l := range b.listeners {
		n += l.Connections()
	}
	return n
}

// OpenTransaction is a transaction that a partition holds open.
type OpenTransaction struct {
	ProducerID  int64
	Topic       string
	Partition   int32
	FirstOffset int64
}

// TransactionFigures is how the transactions of a broker are.
type TransactionFigures struct {
	// Ongoing and Ending are transactions of the coordinators: open, and decided but not yet told to all partitions.
	Ongoing, Ending int
	OldestOngoing   time.Duration
	// Undecided are open transactions without a timeout, which only their two-phase commit ends.
	Undecided []Undecided
	// Hanging are open in a partition and nobody will end them: read_committed consumers of the partition wait for ever. See
	// millrace txn hanging.
	Hanging []OpenTransaction
}

// Transactions tells how the transactions are. It fails with ctx's error when that ends first, and while the coordinators load.
func (b *Broker) Transactions(ctx context.Context) (TransactionFigures, error) {
	var f TransactionFigures
	before := b.openIn()
	all, err := b.listTransactions(ctx)
	if err != nil {
		return f, err
	}
	now := b.server.Clock.Now().UnixMilli()
	for _, d := range all {
		switch d.State {
		case coordinator.Ongoing:
			f.Ongoing++
			f.OldestOngoing = max(f.OldestOngoing, time.Duration(now-d.StartMs)*time.Millisecond)
		case coordinator.PrepareCommit, coordinator.PrepareAbort:
			f.Ending++
		}
	}
	if f.Undecided, err = b.Undecided(ctx); err != nil {
		return f, err
	}
	f.Hanging = hanging(before, all, b.openIn)
	return f, nil
}

// openIn lists what the partitions hold open.
func (b *Broker) openIn() []OpenTransaction {
	var open []OpenTransaction
	for p := range b.replicas.All() {
		topic, index := splitName(p.Name())
		for _, s := range p.Producers() {
			if s.TxnFirstOffset >= 0 {
				open = append(open, OpenTransaction{ProducerID: s.ProducerID, Topic: topic, Partition: index, FirstOffset: s.TxnFirstOffset})
			}
		}
	}
	return open
}

// hanging keeps what no coordinator will end. The order of the looks matters: a partition's transaction that was open before the
// coordinators were asked, that they did not know, and that is still open after, has no owner; one that ended in between has.
func hanging(before []OpenTransaction, known []coordinator.Described, again func() []OpenTransaction) []OpenTransaction {
	owned := map[int64]map[coord.TopicPartition]bool{}
	ending := map[int64]bool{}
	for _, d := range known {
		switch d.State {
		case coordinator.Ongoing:
			parts := map[coord.TopicPartition]bool{}
			for _, p := range d.Partitions {
				parts[p] = true
			}
			owned[d.ProducerID] = parts
		case coordinator.PrepareCommit, coordinator.PrepareAbort:
			ending[d.ProducerID] = true
		}
	}
	var suspects []OpenTransaction
	for _, o := range before {
		if !ending[o.ProducerID] && !owned[o.ProducerID][coord.TopicPartition{Topic: o.Topic, Partition: o.Partition}] {
			suspects = append(suspects, o)
		}
	}
	if len(suspects) == 0 {
		return nil
	}
	still := map[OpenTransaction]bool{}
	for _, o := range again() {
		still[o] = true
	}
	return slices.DeleteFunc(suspects, func(o OpenTransaction) bool { return !still[o] })
}

// listTransactions asks all coordinators.
func (b *Broker) listTransactions(ctx context.Context) ([]coordinator.Described, error) {
	return ask(ctx, "transactions", func(done func([]coordinator.Described, int16)) {
		b.server.Txns.List(coordinator.ListFilter{OlderThanMs: -1}, done)
	})
}
