package streams_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/streamstest"
	"github.com/millrace/millrace/txn/session"
)

// childEnv has what a process that is there to be killed runs.
const childEnv = "MILLRACE_TEST_FAMILY"

type childConfig struct {
	Brokers []string
	Family  int
	Dir     string
}

// TestKilledChild is the main function of a process that TestFamiliesKilled starts.
func TestKilledChild(t *testing.T) {
	raw := os.Getenv(childEnv)
	if raw == "" {
		return
	}
	var c childConfig
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		t.Fatal(err)
	}
	err := families[c.Family].app().Run(t.Context(), streams.Brokers(c.Brokers...), streams.StateDir(c.Dir), streams.CommitEvery(5*time.Millisecond),
		streams.OnProgress(func(streams.Progress) { fmt.Println("committed") }))
	t.Fatalf("the run ended: %v", err)
}

// killed is one family on a broker.
type killed struct {
	t       *testing.T
	ctx     context.Context
	cluster streams.Cluster
	rnd     *rand.Rand
	number  int
	*family
	in  *kgo.Client
	dir string
	at  []string
}

const familyPartitions = 2

// TestFamiliesKilled runs each family of operators with state on a broker, with its
// stores in a folder, and kills it as records arrive: at random steps of commits, and
// as a process, by SIGKILL. In the end its output must be that of a run under virtual
// time that nothing has disturbed. The short form has five families, the long one all.
func TestFamiliesKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	b := brokertest.Start(t, brokertest.OnTCP())
	short := []string{"sessions", "left", "foreign", "suppress", "processor"}
	for i, f := range families {
		if !seedtest.Soak() && !slices.Contains(short, f.name) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			seed := seedtest.New(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			k := &killed{t: t, ctx: ctx, cluster: streams.Brokers(b.Addr().String()), rnd: rand.New(rand.NewPCG(seed, 2)), number: i, family: f, dir: t.TempDir()}
			k.run()
		})
	}
}

func (k *killed) run() {
	records, kills := 240, 3
	if seedtest.Soak() {
		records, kills = 5000, 25
	}
	main, closing := k.inputs(k.rnd, records)
	want := k.undisturbed(append(slices.Clone(main), closing...))
	k.in = client(k.t, k.cluster, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	topics := []string{k.topic("l"), k.topic("r")}
	for name := range k.outputs {
		topics = append(topics, k.topic(name))
	}
	if _, err := kadm.NewClient(k.in).CreateTopics(k.ctx, familyPartitions, 1, nil, topics...); err != nil {
		k.t.Fatal(err)
	}
	if k.first { // a global table is read to its end before the first record
		n := slices.IndexFunc(main, func(g given) bool { return g.topic == k.topic("l") })
		k.feed(main[:n])
		main = main[n:]
	}
	for n := range kills {
		chunk := main[n*len(main)/kills : (n+1)*len(main)/kills]
		if n%3 == 1 {
			k.killChild(chunk)
		} else {
			k.killStep(chunk)
		}
	}
	k.undo(func() { k.caughtUp() }) // the closing records come after all others
	k.killStep(closing)
	k.t.Logf("killed %v", k.at)
	var got map[string][]string
	out := k.output()
	k.undo(func() {
		for got = out.judge(); !maps.EqualFunc(got, want, slices.Equal); got = out.judge() {
			if !out.poll(k.ctx) {
				k.t.Error(difference(got, want))
				return
			}
		}
	})
	quiet, stop := context.WithTimeout(k.ctx, 200*time.Millisecond)
	defer stop()
	for out.poll(quiet) {
	}
	if got = out.judge(); !maps.EqualFunc(got, want, slices.Equal) {
		k.t.Error("after the end: ", difference(got, want))
	}
}

// undisturbed is the output under virtual time.
func (k *killed) undisturbed(all []given) map[string][]string {
	d := streamstest.New(k.t, k.app(), streamstest.Partitions(familyPartitions))
	for _, g := range all {
		if err := d.In[string, string](g.topic).Raw(time.UnixMilli(g.ts), []byte(g.key), g.value); err != nil {
			k.t.Fatal(err)
		}
	}
	o := &output{family: k.family}
	for name := range k.outputs {
		for p := range int32(familyPartitions) {
			for _, r := range d.Topic(k.topic(name), p) {
				o.add(name, r.Key, r.Value, r.Time)
			}
		}
	}
	return o.judge()
}

// feed writes records in small batches, in order.
func (k *killed) feed(records []given) {
	for batch := range slices.Chunk(records, 8) {
		var out []*kgo.Record
		for _, g := range batch {
			out = append(out, &kgo.Record{Topic: g.topic, Partition: partition.ForKey([]byte(g.key), familyPartitions), Key: []byte(g.key), Value: g.value, Timestamp: time.UnixMilli(g.ts)})
		}
		if err := k.in.ProduceSync(k.ctx, out...).FirstErr(); err != nil {
			k.t.Error(err)
			return
		}
	}
}

// feeding feeds beside what is going on.
func (k *killed) feeding(records []given) (done chan struct{}) {
	done = make(chan struct{})
	go func() { defer close(done); k.feed(records) }()
	return done
}

func (k *killed) options() runtime.Options {
	return runtime.Options{StateDir: k.dir, CommitInterval: 5 * time.Millisecond, PurgeInterval: time.Hour}
}

// killStep ends a run before a random step of a commit. A worker that finds nothing
// to do takes no steps: then time ends the run.
func (k *killed) killStep(records []given) {
	top, err := k.app().Topology()
	if err != nil {
		k.t.Fatal(err)
	}
	left := 1 + k.rnd.IntN(14)
	o := k.options()
	o.OnStep = func(_ int, s session.Step) error {
		if left--; left > 0 {
			return nil
		}
		k.at = append(k.at, "before "+string(s))
		return errKilled
	}
	done := k.feeding(records)
	round, stop := context.WithCancel(k.ctx)
	defer stop()
	go func() {
		<-done
		time.AfterFunc(500*time.Millisecond, stop)
	}()
	if err := runtime.Run(round, top, k.cluster, o); err != nil && !errors.Is(err, errKilled) {
		k.t.Fatal(err)
	}
	<-done
}

// killChild kills a process after a random number of commits.
func (k *killed) killChild(records []given) {
	raw, err := json.Marshal(childConfig{k.cluster.Seeds(), k.number, k.dir})
	if err != nil {
		k.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestKilledChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	commits := make(chan string)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case commits <- lines.Text():
			case <-k.ctx.Done():
				return
			}
		}
	}()
	// It starts beside the records. One that has nothing left to commit is killed too.
	done, patience := k.feeding(records), 3*time.Second
	for n := k.rnd.IntN(6); n >= 0; n-- {
		wait, stop := context.WithTimeout(k.ctx, patience)
		patience = 500 * time.Millisecond
		select {
		case line := <-commits:
			if line != "committed" {
				k.t.Errorf("the process says %s", line)
			}
		case <-ended:
			n = 0
		case <-wait.Done():
			n = 0
		}
		stop()
	}
	err = cmd.Process.Kill()
	go func() {
		for range commits {
		}
	}()
	<-ended
	close(commits)
	if werr := cmd.Wait(); err != nil || werr == nil || werr.Error() != "signal: killed" {
		k.t.Errorf("the process ended with %v, %v", err, werr)
	}
	<-done
	k.at = append(k.at, "process")
}

// undo runs the application in peace until f returns.
func (k *killed) undo(f func()) {
	top, err := k.app().Topology()
	if err != nil {
		k.t.Fatal(err)
	}
	run, stop := context.WithCancel(k.ctx)
	done := make(chan error, 1)
	go func() { done <- runtime.Run(run, top, k.cluster, k.options()) }()
	f()
	stop()
	if err := <-done; err != nil {
		k.t.Fatal(err)
	}
}

// caughtUp waits until all records of the inputs are processed and committed.
func (k *killed) caughtUp() {
	admin := kadm.NewClient(k.in)
	topics := []string{k.topic("l")}
	if k.right > 0 {
		topics = append(topics, k.topic("r"))
	}
	ends, err := admin.ListEndOffsets(k.ctx, topics...)
	if err != nil {
		k.t.Fatal(err)
	}
	for behind := true; behind; {
		behind = false
		at, err := admin.FetchOffsets(k.ctx, k.name)
		if err != nil {
			k.t.Fatal(err)
		}
		ends.Each(func(e kadm.ListedOffset) {
			if o, ok := at.Lookup(e.Topic, e.Partition); e.Offset > 0 && (!ok || o.At < e.Offset) {
				behind = true
			}
		})
	}
}

// output collects what has been committed to the outputs of a family.
type output struct {
	*family
	c   *kgo.Client
	all map[string]map[string][]string // topic, key
}

func (k *killed) output() *output {
	o := &output{family: k.family}
	var topics []string
	for name := range k.outputs {
		topics = append(topics, k.topic(name))
	}
	o.c = client(k.t, k.cluster, kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	return o
}

// poll reads on and tells whether ctx has not ended.
func (o *output) poll(ctx context.Context) bool {
	o.c.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		o.add(r.Topic[len(o.name)+1:], r.Key, r.Value, r.Timestamp)
	})
	return ctx.Err() == nil
}

func (o *output) add(name string, key, value []byte, at time.Time) {
	if o.all == nil {
		o.all = map[string]map[string][]string{}
	}
	if o.all[name] == nil {
		o.all[name] = map[string][]string{}
	}
	v := fmt.Sprintf("%q@%d", value, at.UnixMilli())
	switch keys := o.all[name]; {
	case o.outputs[name] != rows:
		keys[string(key)] = append(keys[string(key)], v)
	case value == nil:
		delete(keys, string(key))
	default:
		keys[string(key)] = []string{fmt.Sprintf("%q", value)}
	}
}

// judge is what must be the same, by topic and key.
func (o *output) judge() map[string][]string {
	judged := map[string][]string{}
	for name, keys := range o.all {
		for key, values := range keys {
			values = slices.Clone(values)
			if o.outputs[name] == results {
				slices.Sort(values)
			}
			judged[fmt.Sprintf("%s %q", name, key)] = values
		}
	}
	return judged
}

func difference(got, want map[string][]string) string {
	keys := map[string]bool{}
	for k := range got {
		keys[k] = true
	}
	for k := range want {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Equal(got[k], want[k]) {
			return fmt.Sprintf("%s:\n got %v\nwant %v", k, got[k], want[k])
		}
	}
	return "nothing"
}
