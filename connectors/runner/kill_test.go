package runner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/file"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
	"github.com/millrace/millrace/core/seedtest"
)

// killChild tells the child process of TestKilledProcess what to do: the
// broker's address and the folder with the data, separated by a bar.
const killChild = "MILLRACE_TEST_KILL_CHILD"

const killRecords = 3000

// TestKilledProcess runs a source and a sink in a child process, kills it with
// SIGKILL after a random number of steps, again and again, and compares the
// table with the file.
func TestKilledProcess(t *testing.T) {
	if job := os.Getenv(killChild); job != "" {
		addr, dir, _ := strings.Cut(job, "|")
		if err := pipeline(t.Context(), addr, dir); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	seed := seedtest.New(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	b := brokertest.Start(t, brokertest.OnTCP())
	createTopic(t, b, "orders", 3)
	dir := t.TempDir()
	var text strings.Builder
	for i := range killRecords {
		fmt.Fprintf(&text, "{\"id\":%d,\"at\":\"2001-02-03\"}\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "in.jsonl"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	kills := 0
	for {
		killed, err := runChild(t, b.Addr().String()+"|"+dir, 5+rng.IntN(40), kills < 8)
		if err != nil {
			t.Fatal(err)
		}
		if !killed {
			break
		}
		kills++
	}
	t.Logf("killed %d times", kills)
	if kills < 3 {
		t.Errorf("killed only %d times: the job is too short to prove anything", kills)
	}
	exactly(t, filepath.Join(dir, "out.db"), killRecords)
}

// runChild starts a child and kills it after so many lines of its output.
func runChild(t *testing.T, job string, lines int, kill bool) (killed bool, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProcess$", "-test.v")
	cmd.Env = append(os.Environ(), killChild+"="+job)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return false, err
	}
	var tail []string
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if !strings.HasPrefix(sc.Text(), "step ") {
			tail = append(tail, sc.Text())
			continue
		}
		if lines--; lines == 0 && kill {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				return false, err
			}
		}
	}
	if err := cmd.Wait(); err != nil && !killed {
		return false, fmt.Errorf("%w\n%s", err, strings.Join(tail, "\n"))
	}
	return killed, nil
}

// pipeline reads the file into the topic and the topic into the table, and
// prints a line for each step. It ends when all is stored.
func pipeline(ctx context.Context, addr, dir string) error {
	c := connectors.Brokers(addr)
	src, err := file.New(file.Config{
		Name: "in", Paths: []string{filepath.Join(dir, "in.jsonl")}, Topic: "orders", UnitRecords: 50,
		Key: file.Field("id"), Time: file.TimeField("at", time.DateOnly, nil),
	})
	if err != nil {
		return err
	}
	source, err := runner.NewSource(runner.SourceOptions{
		Cluster: c, Source: src, OnProgress: func(p runner.Progress) { fmt.Println("step read", p.Read, "of", p.Total) },
	})
	if err != nil {
		return err
	}
	sink, err := runner.NewSink(runner.SinkOptions{
		Cluster: c, Topics: []string{"orders"}, Value: connectors.JSON, Tasks: 2, Instance: "kill", Linger: 2 * time.Millisecond, MaxRecords: 40,
		New: func(int) (connectors.TxSink, error) { return sqlite.New(sqliteConfig(filepath.Join(dir, "out.db"))) },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sinkCtx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- sink.Run(sinkCtx) }()
	go printSteps(sinkCtx, sink)
	if err := source.Run(ctx); err != nil {
		return err
	}
	if err := storedAll(ctx, c, sink); err != nil {
		return err
	}
	stop()
	return <-done
}

// printSteps prints a line for each commit of the sink.
func printSteps(ctx context.Context, s *runner.Sink) {
	for last := int64(0); ctx.Err() == nil; {
		st, err := s.Await(ctx, func(st runner.Status) bool { return commits(st) > last })
		if err != nil {
			return
		}
		last = commits(st)
		fmt.Println("step stored", last)
	}
}

func commits(st runner.Status) (n int64) {
	for _, t := range st.Tasks {
		n += t.Commits
	}
	return n
}

// storedAll waits until the sink is at the end of the topic.
func storedAll(ctx context.Context, c connectors.Cluster, s *runner.Sink) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial))
	if err != nil {
		return err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, "orders")
	if err = errors.Join(err, ends.Error()); err != nil {
		return err
	}
	_, err = s.Await(ctx, func(st runner.Status) bool {
		all := true
		ends.Each(func(l kadm.ListedOffset) {
			p, ok := st.Partition(connectors.TP{Topic: l.Topic, Partition: l.Partition})
			all = all && ok && p.State == runner.Running && p.Position.Next >= l.Offset
		})
		return all
	})
	return err
}

func createTopic(t testing.TB, c connectors.Cluster, topic string, partitions int32) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, -1, nil, topic); err != nil {
		t.Fatal(err)
	}
}
