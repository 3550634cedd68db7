package streams_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/streams"
)

// What BenchmarkJobs runs on: so many click events of so many users.
const (
	speedTopic      = "events"
	speedEvents     = 2_000_000
	speedUsers      = 10_000
	speedPartitions = 4
)

// speedEnv has the folder of a broker that a benchmark starts as a process, so that
// the benchmark's own CPU time is the engine's.
const speedEnv = "MILLRACE_TEST_SPEED"

// TestSpeedBroker is the main function of that process. It ends with its input.
func TestSpeedBroker(t *testing.T) {
	dir := os.Getenv(speedEnv)
	if dir == "" {
		return
	}
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Listen: "127.0.0.1:0", GroupInitialRebalanceDelay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := fillEvents(t.Context(), b, speedEvents); err != nil {
		t.Fatal(err)
	}
	fmt.Println("addr", b.Addr())
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	t.Log(err, b.Close())
}

// fillEvents makes the topic of the events and writes n of them.
func fillEvents(ctx context.Context, c streams.Cluster, n int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(50_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	forever := "-1"
	if _, err := kadm.NewClient(client).CreateTopic(ctx, speedPartitions, 1, map[string]*string{"retention.ms": &forever}, speedTopic); err != nil {
		return err
	}
	var once sync.Once
	var failed error
	x := uint32(42)
	for i := range n {
		x = x*1664525 + 1013904223
		key := fmt.Sprintf("user-%d", x>>8%speedUsers)
		ms := 1_700_000_000_000 + int64(i)*10
		value := fmt.Appendf(nil, `{"user":%q,"url":"/shop/item/%d","ms":%d,"referrer":"https://example.org/search?q=%d","cents":%d}`, key, x%1000, ms, x%97, x%9999)
		r := &kgo.Record{Topic: speedTopic, Partition: partition.ForKey([]byte(key), speedPartitions), Key: []byte(key), Value: value, Timestamp: time.UnixMilli(ms)}
		client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return failed
}

// speedBroker is a broker in a process of its own.
type speedBroker struct {
	addr string
	cmd  *exec.Cmd
}

func startSpeedBroker(b *testing.B) *speedBroker {
	b.Helper()
	if addr := os.Getenv("MILLRACE_TEST_BROKERS"); addr != "" { // has the events already
		return &speedBroker{addr: addr}
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	s := &speedBroker{cmd: exec.Command(self, "-test.run=^TestSpeedBroker$", "-test.v")}
	s.cmd.Env = append(os.Environ(), speedEnv+"="+b.TempDir())
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := in.Close(); err != nil {
			b.Error(err)
		}
		if err := s.cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "addr "); ok {
			s.addr = addr
			go func() { // its last words must not fill the pipe
				for lines.Scan() {
				}
			}()
			return s
		}
	}
	b.Fatal("the broker does not start")
	return nil
}

// cpu is the processor time of the broker so far; 0 when it is not ours.
func (s *speedBroker) cpu(b *testing.B) time.Duration {
	if s.cmd == nil {
		return 0
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')'):]))
	user, _ := strconv.ParseInt(fields[12], 10, 64)
	system, _ := strconv.ParseInt(fields[13], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // the unit is 1/100 s on Linux
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// speedJobs are the jobs whose figures ARCHITECTURE.md has.
var speedJobs = []struct {
	name  string
	build func(*streams.App, string)
}{
	{"filter and map", func(app *streams.App, out string) {
		app.Stream[string, string](speedTopic).
			Filter(func(v string) bool { return !strings.HasSuffix(v, "0}") }).
			MapValues(func(v string) string { return v[:len(v)-1] }).To(out)
	}},
	{"count", func(app *streams.App, out string) {
		app.Stream[string, string](speedTopic).GroupByKey().Count(streams.As("n")).To(out)
	}},
	{"count, merged", func(app *streams.App, out string) {
		app.Stream[string, string](speedTopic).GroupByKey().Count(streams.As("n"), streams.Cached(50_000)).To(out)
	}},
	{"count per minute", func(app *streams.App, out string) {
		app.Stream[string, string](speedTopic).GroupByKey().
			Windowed(streams.Tumbling(time.Minute, streams.Grace(10*time.Second))).Count(streams.As("n")).ToStream().To(out)
	}},
}

// BenchmarkJobs runs whole jobs, exactly once, from a topic of 2 million events in 4
// partitions to their results, with one worker. The broker is a process of its own;
// an operation is one event, so -benchtime=2000000x runs through all of them. It
// reports records a second between the first and the last commit, and the processor
// time per record of this process, which is the engine's, and of the broker's.
func BenchmarkJobs(b *testing.B) {
	s := startSpeedBroker(b)
	for _, j := range speedJobs {
		b.Run(j.name, func(b *testing.B) {
			app := streams.New(fmt.Sprintf("speed-%d", time.Now().UnixNano()))
			out := app.ID() + "-out"
			j.build(app, out)
			s.topic(b, out)
			s.run(b, app)
		})
	}
}

func (s *speedBroker) topic(b *testing.B, name string) {
	b.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.addr))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	forever := "-1"
	if _, err := kadm.NewClient(client).CreateTopic(b.Context(), speedPartitions, 1, map[string]*string{"retention.ms": &forever}, name); err != nil {
		b.Fatal(err)
	}
}

func (s *speedBroker) run(b *testing.B, app *streams.App) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var first, last time.Time
	var from, to int64
	want := int64(min(b.N, speedEvents))
	b.ReportAllocs()
	b.ResetTimer()
	engine, other := ownCPU(), s.cpu(b)
	err := app.Run(ctx, streams.Brokers(s.addr), streams.StateDir(filepath.Join(b.TempDir(), "state")),
		streams.OnProgress(func(p streams.Progress) {
			last, to = time.Now(), p.Processed
			if first.IsZero() {
				first, from = last, to
			}
			if p.Processed >= want {
				cancel()
			}
		}))
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if to == from {
		return
	}
	perRecord := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / float64(to) }
	b.ReportMetric(float64(to-from)/last.Sub(first).Seconds(), "rec/s")
	b.ReportMetric(perRecord(ownCPU()-engine), "engine-µs/rec")
	b.ReportMetric(perRecord(s.cpu(b)-other), "broker-µs/rec")
}
