package runtime_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// A changelog with committed records and a group without offsets: whoever reads
// the inputs now counts them on top of what is there. Records of an aborted
// transaction are none, nor does it matter that a table's topic is full.
func TestLostOffsetsFailLoudly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		commit bool
	}{{"committed", true}, {"aborted", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, time.Minute)
			j.label()
			j.send(100)
			changelog := topology.InternalName(j.app, "counts", topology.Changelog)
			j.create(changelog)
			j.transaction(c.commit, &kgo.Record{Topic: changelog, Partition: 1, Key: []byte("word-03"), Value: []byte("12345678")})
			if c.commit {
				err := runtime.Run(j.ctx, j.topology(), j.cluster, j.options(t.TempDir()))
				if !errors.Is(err, runtime.ErrLostOffsets) || !strings.Contains(err.Error(), changelog) {
					t.Errorf("run ended with %v", err)
				}
				return
			}
			r := j.start(j.options(t.TempDir()))
			j.await(r)
			j.finish(r)
			j.check()
		})
	}
}

// transaction produces records in a transaction and ends it.
func (j *job) transaction(commit bool, rs ...*kgo.Record) {
	j.t.Helper()
	p, err := kgo.NewClient(kgo.SeedBrokers(j.cluster.Seeds()...), kgo.Dialer(j.cluster.Dial),
		kgo.TransactionalID("made-by-hand"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		j.t.Fatal(err)
	}
	defer p.Close()
	if err := p.BeginTransaction(); err != nil {
		j.t.Fatal(err)
	}
	if err := p.ProduceSync(j.ctx, rs...).FirstErr(); err != nil {
		j.t.Fatal(err)
	}
	if err := p.EndTransaction(j.ctx, kgo.TransactionEndTry(commit)); err != nil {
		j.t.Fatal(err)
	}
}

// Every input of a task has an offset from the first commit on, also one that
// nothing came from.
func TestFirstCommitHasAllInputs(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label() // the words of every partition, and no event at all
	r := j.start(j.options(t.TempDir()))
	shuffled := topology.InternalName(j.app, "words", topology.Repartition)
	for have := 0; have < 2*partitions; {
		have = 0
		for _, o := range j.committed(j.words, shuffled) {
			if o.Next >= 0 {
				have++
			}
		}
	}
	j.finish(r)
}

// committed is where the application's group is in some topics.
func (j *job) committed(topics ...string) session.Offsets {
	j.t.Helper()
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	if err != nil {
		j.t.Fatal(err)
	}
	defer c.Close()
	var parts []session.TopicPartition
	for _, topic := range topics {
		for p := range int32(partitions) {
			parts = append(parts, session.TopicPartition{Topic: topic, Partition: p})
		}
	}
	offsets, err := c.CommittedOffsets(j.ctx, j.app, parts)
	if err != nil {
		j.t.Fatal(err)
	}
	return offsets
}
