package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/statetest"
	"github.com/millrace/millrace/txn/session"
)

// tcp is a cluster reached over the network.
type tcp []string

func (c tcp) Seeds() []string { return c }

func (c tcp) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// brokers is our own broker, or what MILLRACE_TEST_BROKERS names, where "fake" is
// the client library's fake.
func brokers(t testing.TB) tcp {
	t.Helper()
	switch b := os.Getenv("MILLRACE_TEST_BROKERS"); b {
	case "":
		return tcp{brokertest.Start(t, brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) {
			c.GroupInitialRebalanceDelay = time.Millisecond
		})).Addr().String()}
	case "fake":
	default:
		return strings.Split(b, ",")
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

const partitions = 4

// job is one application with its topics, and the answer it must give.
type job struct {
	t       testing.TB
	ctx     context.Context
	cluster runtime.Cluster
	admin   *kgo.Client
	app     string
	events  string
	words   string
	out     string
	want    map[string]int // events per word
	sent    int
	calls   atomic.Int64 // of Process
	resumed atomic.Int64 // the latest stream time that a task was given back
	engine  state.Engine // of the stores; nil: goleveldb
}

func newJob(t testing.TB, limit time.Duration) *job {
	t.Helper()
	return newJobOn(t, limit, brokers(t))
}

func newJobOn(t testing.TB, limit time.Duration, cluster runtime.Cluster) *job {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	j := &job{t: t, ctx: ctx, cluster: cluster, want: map[string]int{}}
	var err error
	if j.admin, err = kgo.NewClient(kgo.SeedBrokers(cluster.Seeds()...), kgo.Dialer(cluster.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.admin.Close)
	j.app = fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
	j.events, j.words, j.out = j.app+"-events", j.app+"-labels", j.app+"-out"
	for _, name := range []string{j.events, j.words, j.out} {
		j.create(name)
	}
	return j
}

func (j *job) create(name string) {
	j.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, partitions, 1
	req.Topics, req.TimeoutMillis = append(req.Topics, rt), 10_000
	resp, err := req.RequestWith(j.ctx, j.admin)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		j.t.Fatal(err)
	}
}

const words = 37

func word(i int) string { return fmt.Sprintf("word-%02d", i%words) }

// label fills the table, with timestamps older than any event.
func (j *job) label() {
	j.t.Helper()
	var rs []*kgo.Record
	for i := range words {
		key := []byte(word(i))
		rs = append(rs, &kgo.Record{
			Topic: j.words, Partition: partition.ForKey(key, partitions), Key: key, Value: []byte("label-of-" + word(i)),
			Timestamp: time.UnixMilli(1000),
		})
	}
	j.produce(rs)
}

// relabel changes one label at a given time.
func (j *job) relabel(i int, ms int64) {
	j.t.Helper()
	key := []byte(word(i))
	j.produce([]*kgo.Record{{
		Topic: j.words, Partition: partition.ForKey(key, partitions), Key: key, Value: []byte("new-label-of-" + word(i)),
		Timestamp: time.UnixMilli(ms),
	}})
}

// send adds n events, of 2001.
func (j *job) send(n int) {
	j.t.Helper()
	var rs []*kgo.Record
	for range n {
		w := word(j.sent * 7)
		j.want[w]++
		rs = append(rs, &kgo.Record{
			Topic: j.events, Partition: int32(j.sent) % partitions, Value: []byte(w),
			Timestamp: time.UnixMilli(1_000_000_000_000 + int64(j.sent)),
		})
		j.sent++
	}
	j.produce(rs)
}

func (j *job) produce(rs []*kgo.Record) {
	j.t.Helper()
	if err := j.admin.ProduceSync(j.ctx, rs...).FirstErr(); err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) topology() *topology.Topology {
	app := counting(j.app, j.events, j.words, j.out, false)
	for i := range app.Subs {
		make := app.Subs[i].New
		app.Subs[i].New = func(e task.Env) (task.Task, error) {
			for _, p := range e.Progress {
				if ms, err := strconv.ParseInt(p, 10, 64); err == nil {
					j.resumed.Store(max(j.resumed.Load(), ms))
				}
			}
			t, err := make(e)
			return &counted{Task: t, n: &j.calls}, err
		}
	}
	return app
}

// counted counts the records that its task is given, repetitions included.
type counted struct {
	task.Task
	n *atomic.Int64
}

func (c *counted) Process(r *task.Record) error {
	c.n.Add(1)
	return c.Task.Process(r)
}

// options are quick ones for tests; logs go to the test with MILLRACE_TEST_LOG.
func (j *job) options(dir string) runtime.Options {
	o := runtime.Options{
		StateDir: dir, Workers: 2, CommitInterval: 30 * time.Millisecond, Heartbeat: 50 * time.Millisecond,
		SessionTimeout: 6 * time.Second, TransactionTimeout: 5 * time.Second, PurgeInterval: 100 * time.Millisecond,
		Replication: 1, Store: state.OverlayOptions{FlushCommits: 3},
		Stores: runtime.StoresOptions{Engine: j.engine},
	}
	if os.Getenv("MILLRACE_TEST_LOG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return o
}

// running is a run in the background.
type running struct {
	stop context.CancelFunc
	done chan error
}

func (j *job) start(o runtime.Options) *running { return j.run(j.topology(), o) }

func (j *job) run(app *topology.Topology, o runtime.Options) *running {
	ctx, cancel := context.WithCancel(j.ctx)
	r := &running{stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- runtime.Run(ctx, app, j.cluster, o) }()
	return r
}

// startCount runs the second sub-topology alone; its re-keyed input is filled by
// sendKeyed.
func (j *job) startCount(o runtime.Options) *running {
	app := j.topology()
	app.Subs = app.Subs[1:]
	return j.run(app, o)
}

// sendKeyed adds n events as the first sub-topology would have re-keyed them.
func (j *job) sendKeyed(n int) {
	j.t.Helper()
	topic := topology.InternalName(j.app, "words", topology.Repartition)
	if j.sent == 0 {
		j.create(topic)
	}
	var rs []*kgo.Record
	for range n {
		w := word(j.sent * 7)
		j.want[w]++
		rs = append(rs, &kgo.Record{
			Topic: topic, Partition: partition.ForKey([]byte(w), partitions), Key: []byte(w),
			Timestamp: time.UnixMilli(1_000_000_000_000 + int64(j.sent)),
		})
		j.sent++
	}
	j.produce(rs)
}

func (j *job) finish(r *running) {
	j.t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		j.t.Fatalf("run: %v", err)
	}
}

// expel removes a static member from the group.
func (j *job) expel(instance string) {
	j.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = j.app
	m := kmsg.NewLeaveGroupRequestMember()
	m.InstanceID = &instance
	req.Members = append(req.Members, m)
	resp, err := req.RequestWith(j.ctx, j.admin)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.Members[0].ErrorCode)
	}
	if err != nil {
		j.t.Fatal(err)
	}
}

// read returns the committed records of a topic, partition by partition: those
// that can be read now, without waiting for an open transaction, but in any case
// those before the given offsets.
func (j *job) read(topic string, before map[int32]int64) map[int32][]session.Record {
	j.t.Helper()
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	if err != nil {
		j.t.Fatal(err)
	}
	defer c.Close()
	var parts []session.TopicPartition
	for p := range int32(partitions) {
		parts = append(parts, session.TopicPartition{Topic: topic, Partition: p})
	}
	ends, err := c.List(j.ctx, session.StableEnd, parts)
	if err != nil {
		j.t.Fatal(err)
	}
	for p, at := range before {
		part := session.TopicPartition{Topic: topic, Partition: p}
		ends[part] = max(ends[part], at)
	}
	starts, err := c.List(j.ctx, session.Start, parts)
	if err != nil {
		j.t.Fatal(err)
	}
	r := c.NewReader(session.ReaderOptions{})
	defer r.Close()
	got := map[int32][]session.Record{}
	for _, p := range parts {
		f := r.Add(p, starts[p])
		for f.Position() < ends[p] {
			rec, ok := f.Head()
			if !ok {
				if err := f.Err(); err != nil {
					j.t.Fatal(err)
				}
				if f.Position() >= ends[p] {
					break
				}
				select {
				case <-r.Arrived():
				case <-j.ctx.Done():
					j.t.Fatalf("%s/%d: stuck at %d of %d, stable end %d", topic, p.Partition, f.Position(), ends[p], f.End())
				}
				continue
			}
			c := *rec
			c.Key, c.Value = slices.Clone(rec.Key), slices.Clone(rec.Value)
			c.Headers = slices.Clone(rec.Headers)
			got[p.Partition] = append(got[p.Partition], c)
			f.Pop()
		}
	}
	return got
}

// await waits until the output has as many records as events were sent. The
// runs are those that must not end meanwhile.
func (j *job) await(runs ...*running) {
	j.t.Helper()
	for {
		n := 0
		for _, rs := range j.read(j.out, nil) {
			n += len(rs)
		}
		if n >= j.sent {
			return
		}
		for _, r := range runs {
			select {
			case err := <-r.done:
				j.t.Fatalf("run ended: %v", err)
			default:
			}
		}
		select {
		case <-j.ctx.Done():
			j.t.Fatalf("%d of %d results: %v", n, j.sent, j.ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// check compares the output with the answer: every word counted from 1 to its
// number without a gap or a repetition, and always with its label.
func (j *job) check() {
	j.t.Helper()
	last := map[string]int{}
	for p, rs := range j.read(j.out, nil) {
		for _, r := range rs {
			label, count, _ := strings.Cut(string(r.Value), " ")
			w := string(r.Key)
			n, err := strconv.Atoi(count)
			if err != nil || n != last[w]+1 {
				j.t.Errorf("out/%d offset %d: %s is %q after %d", p, r.Offset, w, r.Value, last[w])
			}
			if label != "label-of-"+w {
				j.t.Errorf("out/%d offset %d: %s has label %q", p, r.Offset, w, label)
			}
			last[w] = n
		}
	}
	if !maps.Equal(last, j.want) {
		j.t.Errorf("counts\n%v, want\n%v", last, j.want)
	}
}

// checkStores opens the stores of a stopped process and compares each with the
// fold of its committed changelog up to its position.
func (j *job) checkStores(dir string) {
	j.t.Helper()
	for _, s := range []struct{ store, topic string }{
		{"counts", topology.InternalName(j.app, "counts", topology.Changelog)}, {"labels", j.words},
	} {
		images := j.images(dir, s.store)
		if len(images) == 0 { // ended before it made a store, perhaps before it made the changelog too
			continue
		}
		positions := map[int32]int64{}
		for p, img := range images {
			positions[p] = img.Position().Next
		}
		logs := j.read(s.topic, positions)
		for p, img := range images {
			fold := map[string]string{}
			for _, r := range logs[p] {
				switch {
				case r.Offset >= positions[p]:
				case r.Value == nil:
					delete(fold, string(r.Key))
				default:
					fold[string(r.Key)] = string(r.Value)
				}
			}
			if got := statetest.Dump(j.t, img); !maps.Equal(got, fold) {
				j.t.Errorf("store %s/%d at %d:\n%v\nits changelog folds to\n%v", s.store, p, positions[p], show(got), show(fold))
			}
			if err := img.Close(); err != nil {
				j.t.Fatal(err)
			}
		}
	}
}

// images opens the stores that a stopped process has left.
func (j *job) images(dir, store string) map[int32]state.Image {
	j.t.Helper()
	engine := j.engine
	if engine == nil {
		engine = state.GoLevelDB()
	}
	images := map[int32]state.Image{}
	for p := range int32(partitions) {
		path := filepath.Join(dir, j.app, "stores", store, strconv.Itoa(int(p)))
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if engine.Name() != "goleveldb" {
			path = filepath.Join(path, engine.Name())
		}
		img, err := engine.Open(path)
		if err != nil {
			j.t.Fatal(err)
		}
		images[p] = img
	}
	return images
}

func show(rows map[string]string) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		v := rows[k]
		if len(v) == 8 {
			v = fmt.Sprint(binary.BigEndian.Uint64([]byte(v)))
		}
		out = append(out, k+"="+v)
	}
	return out
}
