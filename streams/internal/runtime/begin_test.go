package runtime_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// Where a source begins without a committed offset. Each partition has five records of
// 2001 and then five of now, but for one that has only old ones.
func TestWhereASourceBegins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		begin   topology.Begin
		results int // at once, and after five more in each partition
		more    int
	}{
		{"start", topology.Begin{}, 35, 55},
		{"end", topology.Begin{At: topology.BeginEnd}, 0, 20},
		{"an hour ago", topology.Begin{At: topology.BeginAgo, Ago: time.Hour}, 15, 35},
		{"long ago", topology.Begin{At: topology.BeginAgo, Ago: 50 * 365 * 24 * time.Hour}, 35, 55},
		{"committed", topology.Begin{At: topology.BeginNowhere}, 12, 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, time.Minute)
			n := 0
			send := func(at time.Time, partitions int32) {
				var rs []*kgo.Record
				for p := range partitions {
					for range 5 {
						n++
						rs = append(rs, &kgo.Record{Topic: j.events, Partition: p, Value: []byte(strconv.Itoa(n)), Timestamp: at})
					}
				}
				j.produce(rs)
			}
			send(time.UnixMilli(1_000_000_000_000), partitions)
			send(time.Now(), partitions-1)
			app := j.distinct(false)
			app.Subs[0].Sources[0].Begin = c.begin
			o := j.options(t.TempDir())
			o.Leave = true // a group with members takes offsets from nobody else
			if c.begin.At == topology.BeginNowhere {
				if err := runtime.Run(j.ctx, app, j.cluster, o); !errors.Is(err, runtime.ErrNoOffset) {
					t.Fatalf("without an offset: %v", err)
				}
				j.commit(map[int32]int64{0: 7, 1: 7, 2: 7, 3: 2})
			}
			drain := func(want int) {
				t.Helper()
				r, err := runtime.Start(j.ctx, app, j.cluster, o)
				j.must(err)
				j.must(r.Await(j.ctx, runtime.JobRunning))
				j.must(r.Drain(j.ctx))
				if got := j.results(); got != want {
					t.Fatalf("%d results, want %d", got, want)
				}
			}
			drain(c.results)
			if c.results > 0 { // what has no offset yet would begin at the end again
				send(time.Now(), partitions)
				drain(c.more)
			}
		})
	}
}

// commit gives the group offsets of the events.
func (j *job) commit(next map[int32]int64) {
	j.t.Helper()
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	j.must(err)
	defer c.Close()
	p, err := c.NewProducer(j.ctx, session.ProducerOptions{Mode: session.AtLeastOnce})
	j.must(err)
	defer p.Abandon()
	offsets := session.Offsets{}
	for n, at := range next {
		offsets[session.TopicPartition{Topic: j.events, Partition: n}] = session.Offset{Next: at, LeaderEpoch: -1}
	}
	j.must(p.Mark(j.ctx, offsets, session.Generation{Group: j.app}))
}
