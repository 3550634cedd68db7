package group

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// stables makes a machine with n stable groups of one member each.
func stables(tb testing.TB, n int) (*driver, []*kmsg.HeartbeatRequest) {
	tb.Helper()
	d := newDriver(Options{InitialRebalanceDelay: -1})
	beats := make([]*kmsg.HeartbeatRequest, n)
	for i := range beats {
		g := fmt.Sprintf("group-%d", i)
		_, a := parse("join c v=3 g=" + g)
		d.run(d.m.Join(d.nowMs, d.token("c"), Client{ID: "c"}, a.join()))
		leader := d.m.groups[g].live.leader
		_, a = parse("sync c g=" + g + " m=" + leader + " assign=" + leader + ":all")
		d.run(d.m.Sync(d.nowMs, d.token("c"), a.sync()))
		beats[i] = kmsg.NewPtrHeartbeatRequest()
		beats[i].Group, beats[i].MemberID, beats[i].Generation = g, leader, 1
	}
	return d, beats
}

// commitOne is what a member commits.
func commitOne(beat *kmsg.HeartbeatRequest) *Commit {
	return &Commit{
		Group: beat.Group, Member: beat.MemberID, Generation: 1, Version: 10, RetentionMs: -1,
		Offsets: []Offset{{Topic: "topic", TopicID: ID{1}, Partition: 3, Offset: 5, LeaderEpoch: 2}},
	}
}

// replayAll replays an output as a shard does, without a log.
func replayAll(tb testing.TB, m *Machine, out coord.Output, offset *int64) {
	for _, r := range out.Records {
		*offset++
		if err := m.Replay(coord.Replayed{Offset: *offset, ProducerID: -1, Key: r.Key, Value: r.Value}); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestAllocations: a heartbeat allocates its answer, a commit its codes and what
// boxes them. Nothing else, however many groups there are.
func TestAllocations(t *testing.T) {
	d, beats := stables(t, 100)
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i++
		d.m.Heartbeat(d.nowMs, 1, beats[i%len(beats)])
	}); n > 1 {
		t.Errorf("a heartbeat allocates %v times, want at most 1", n)
	}
	commits := make([]*Commit, len(beats))
	for i := range beats {
		commits[i] = commitOne(beats[i])
	}
	offset := int64(1000)
	if n := testing.AllocsPerRun(1000, func() {
		i++
		replayAll(t, d.m, d.m.Commit(d.nowMs, 1, commits[i%len(commits)]), &offset)
	}); n > 4 {
		t.Errorf("a commit and its replay allocate %v times, want at most 4", n)
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	d, beats := stables(b, 10_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.m.Heartbeat(d.nowMs+int64(i/1000), 1, beats[i%len(beats)])
	}
}

func BenchmarkCommit(b *testing.B) {
	d, beats := stables(b, 10_000)
	commits := make([]*Commit, len(beats))
	for i := range beats {
		commits[i] = commitOne(beats[i])
	}
	offset := int64(1_000_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		replayAll(b, d.m, d.m.Commit(d.nowMs, 1, commits[i%len(commits)]), &offset)
	}
}

// BenchmarkTick: ten thousand groups whose members send heartbeats, and the clock
// goes on. It is the cost for each group and session.
func BenchmarkTick(b *testing.B) {
	d, beats := stables(b, 10_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.nowMs++
		d.m.Heartbeat(d.nowMs, 1, beats[i%len(beats)])
		if at, ok := d.m.NextDeadline(); ok && at <= d.nowMs {
			d.run(d.m.Tick(d.nowMs))
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	d, beats := stables(b, 10_000)
	for i := range beats {
		d.run(d.m.Commit(d.nowMs, 0, commitOne(beats[i])))
	}
	b.ReportAllocs()
	for b.Loop() {
		m, err := d.load(d.log)
		if err != nil {
			b.Fatal(err)
		}
		m.Loaded(d.nowMs)
	}
	b.ReportMetric(float64(len(d.log)), "records")
}
