package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// eachWay runs a test with clients that come through Dial and through TCP.
func eachWay(t *testing.T, f func(t *testing.T, b *broker.Broker, client func(...kgo.Opt) *kgo.Client)) {
	for _, way := range []string{"memory", "tcp"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var options []brokertest.Option
			if way == "tcp" {
				options = append(options, brokertest.OnTCP(), brokertest.InFolder(t.TempDir()))
			}
			b := brokertest.Start(t, options...)
			f(t, b, func(opts ...kgo.Opt) *kgo.Client {
				base := []kgo.Opt{kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial)}
				if way == "tcp" {
					base = []kgo.Opt{kgo.SeedBrokers(b.Addr().String())}
				}
				base = append(base, kgo.AllowAutoTopicCreation(), kgo.FetchMaxWait(500*time.Millisecond))
				return newClient(t, append(base, opts...)...)
			})
		})
	}
}

func newClient(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// values polls until n records are there.
func values(t *testing.T, ctx context.Context, cl *kgo.Client, n int) []string {
	t.Helper()
	var out []string
	for len(out) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d of %d records: %v", len(out), n, err)
		}
		for r := range fetches.RecordsAll() {
			out = append(out, string(r.Value))
		}
	}
	return out
}

func TestProduceAndConsume(t *testing.T) {
	eachWay(t, func(t *testing.T, _ *broker.Broker, client func(...kgo.Opt) *kgo.Client) {
		ctx := background(t)
		producer := client(kgo.DefaultProduceTopic("orders"))
		const n = 5000
		for i := range n {
			producer.Produce(ctx, kgo.StringRecord(fmt.Sprint(i)), func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if err := producer.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		for _, level := range []kgo.IsolationLevel{kgo.ReadUncommitted(), kgo.ReadCommitted()} {
			consumer := client(kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(level))
			for i, v := range values(t, ctx, consumer, n) {
				if v != fmt.Sprint(i) {
					t.Fatalf("record %d is %s", i, v)
				}
			}
		}
	})
}

// A consumer that waits at the end hears of the next record at once.
func TestParkedFetchIsWoken(t *testing.T) {
	eachWay(t, func(t *testing.T, _ *broker.Broker, client func(...kgo.Opt) *kgo.Client) {
		ctx := background(t)
		producer := client(kgo.DefaultProduceTopic("t"), kgo.ProducerLinger(0))
		consumer := client(kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(20*time.Second))
		for i := range 50 {
			v := fmt.Sprint(i)
			if err := producer.ProduceSync(ctx, kgo.StringRecord(v)).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if got := values(t, ctx, consumer, 1); got[0] != v {
				t.Fatalf("got %s, want %s", got[0], v)
			}
		}
	})
}

func TestAdmin(t *testing.T) {
	eachWay(t, func(t *testing.T, _ *broker.Broker, client func(...kgo.Opt) *kgo.Client) {
		ctx := background(t)
		adm := kadm.NewClient(client())
		compact := "compact"
		made, err := adm.CreateTopics(ctx, 3, 1, map[string]*string{"cleanup.policy": &compact}, "a", "b")
		if err != nil || made.Error() != nil {
			t.Fatal(err, made.Error())
		}
		if again, err := adm.CreateTopic(ctx, 1, 1, nil, "a"); !errors.Is(err, kerr.TopicAlreadyExists) {
			t.Errorf("second creation: %+v, %v", again, err)
		}
		topics, err := adm.ListTopics(ctx)
		if err != nil || len(topics) != 2 || len(topics["a"].Partitions) != 3 {
			t.Errorf("topics %v, %v", topics.Names(), err)
		}
		configs, err := adm.DescribeTopicConfigs(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, kv := range configs[0].Configs {
			found = found || kv.Key == "cleanup.policy" && kv.MaybeValue() == "compact"
		}
		if !found {
			t.Errorf("cleanup.policy=compact is not among %v", configs[0].Configs)
		}
		gone, err := adm.DeleteTopics(ctx, "a")
		if err != nil || gone.Error() != nil {
			t.Fatal(err, gone.Error())
		}
		// Another client: the first one remembers what it has listed.
		if topics, err = kadm.NewClient(client()).ListTopics(ctx); err != nil || topics.Has("a") || !topics.Has("b") {
			t.Errorf("topics after deletion: %v, %v", topics.Names(), err)
		}
	})
}

func TestRecordsSurviveRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ctx := background(t)
	for life := range 3 {
		b, err := broker.Start(ctx, broker.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.AllowAutoTopicCreation(),
			kgo.DefaultProduceTopic("t"), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err := cl.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(life))).FirstErr(); err != nil {
			t.Fatal(err)
		}
		for i, v := range values(t, ctx, cl, life+1) {
			if v != fmt.Sprint(i) {
				t.Errorf("life %d: record %d is %s", life, i, v)
			}
		}
		cl.Close()
		for range 2 { // Close is idempotent
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestConcurrentAutoCreation(t *testing.T) {
	b := brokertest.Start(t)
	ctx := background(t)
	var wg sync.WaitGroup
	for i := range 100 {
		cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.AllowAutoTopicCreation())
		wg.Go(func() {
			if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "same", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ConsumeTopics("same"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	seen := map[string]bool{}
	for _, v := range values(t, ctx, cl, 100) {
		seen[v] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different records of 100", len(seen))
	}
}

func TestTwoBrokersDoNotMeet(t *testing.T) {
	a, b := brokertest.Start(t), brokertest.Start(t)
	if c, err := a.Dial(background(t), "tcp", b.Seeds()[0]); err == nil {
		c.Close()
		t.Error("one broker's Dial reaches the other")
	}
	if a.Addr() != nil {
		t.Errorf("a broker without a socket has the address %v", a.Addr())
	}
}

func TestContextEndsTheBroker(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b, err := broker.Start(ctx, broker.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	addr := b.Addr().String()
	cancel()
	if err := b.Close(); err != nil { // waits for the end, whoever began it
		t.Fatal(err)
	}
	if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		c.Close()
		t.Error("the port is open after the context has ended")
	}
}

func TestStartErrors(t *testing.T) {
	ctx := context.Background()
	start := func(c broker.Config) error {
		b, err := broker.Start(ctx, c)
		if err == nil {
			if cerr := b.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		return err
	}
	says := func(what string, err error, target error, parts ...string) {
		t.Helper()
		if err == nil || target != nil && !errors.Is(err, target) {
			t.Errorf("%s: %v, want %v", what, err, target)
			return
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %q does not name %q", what, err, p)
			}
		}
	}

	dir := t.TempDir()
	b, err := broker.Start(ctx, broker.Config{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	says("locked folder", start(broker.Config{Dir: dir}), broker.ErrLocked, dir)
	addr := b.Addr().String()
	says("port in use", start(broker.Config{Listen: addr}), nil, addr)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	props := filepath.Join(dir, "meta.properties")
	text, err := os.ReadFile(props)
	if err != nil {
		t.Fatal(err)
	}
	write := func(s string) {
		if err := os.WriteFile(props, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version=1\ncluster.id=x\nnode.id=1\nmillrace.format=2\n")
	says("newer format", start(broker.Config{Dir: dir}), broker.ErrNewerFormat, dir, "2")
	write("version=1\ncluster.id=x\nnode.id=1\n")
	says("foreign folder", start(broker.Config{Dir: dir}), nil, props, "another program")
	if err := os.Remove(props); err != nil {
		t.Fatal(err)
	}
	says("lost identity", start(broker.Config{Dir: dir}), nil, props)
	write(string(text))
	says("other node", start(broker.Config{Dir: dir, NodeID: 7}), nil, "node 1", "node 7")
	if err := start(broker.Config{Dir: dir}); err != nil {
		t.Errorf("the folder does not open any more: %v", err)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says("folder is a file", start(broker.Config{Dir: file}), nil, file)
	if os.Geteuid() != 0 {
		closed := t.TempDir()
		if err := os.Chmod(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		says("read-only folder", start(broker.Config{Dir: closed}), os.ErrPermission, closed)
	}
	says("bad Listen", start(broker.Config{Listen: "nowhere"}), nil, "Listen", "nowhere")
	says("bad partitions", start(broker.Config{DefaultPartitions: -1}), nil, "DefaultPartitions", "-1")
}
