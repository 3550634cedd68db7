package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "millrace")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "millrace")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// patience is how long one command may take.
const patience = 30 * time.Second

type outcome struct {
	code        int
	out, errout string
}

// execute runs one command line.
func execute(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("millrace %s: %v", strings.Join(args, " "), err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errout.String()}
}

// ok runs a command that must succeed and returns its standard output.
func ok(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	o := execute(t, stdin, args...)
	if o.code != 0 {
		t.Fatalf("millrace %s: exit code %d\n%s%s", strings.Join(args, " "), o.code, o.out, o.errout)
	}
	return o.out
}

// process is a running server.
type process struct {
	cmd     *exec.Cmd
	addr    string
	metrics string        // address of the monitoring page, "" without one
	rest    *bufio.Reader // standard output behind the ready line
	log     bytes.Buffer
}

func server(t *testing.T, dir string) *process {
	t.Helper()
	return serverAt(t, dir, "127.0.0.1:0")
}

func serverAt(t *testing.T, dir, addr string, flags ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, append([]string{"server", "--data-dir", dir, "--listen", addr, "--output", "json",
		"--group-initial-rebalance-delay", "1ms"}, flags...)...)}
	p.cmd.Stderr = &p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			if err := p.cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = p.cmd.Wait() // killed
		}
	})
	p.rest = bufio.NewReader(out)
	line, err := p.rest.ReadString('\n')
	if err != nil {
		t.Fatalf("no ready line: %v\n%s", err, p.log.String())
	}
	var ready struct {
		Ready            bool
		Address, Metrics string
	}
	if err := json.Unmarshal([]byte(line), &ready); err != nil || !ready.Ready {
		t.Fatalf("ready line %q: %v", line, err)
	}
	p.addr, p.metrics = ready.Address, ready.Metrics
	return p
}

// stop sends a signal and waits for a clean end.
func (p *process) stop(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	more, _ := p.rest.ReadString(0) // until the end
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("after %v: %v\n%s", sig, err, p.log.String())
	}
	if more != "" {
		t.Errorf("standard output has more than the ready line: %q", more)
	}
}

func TestServerTopicProduceConsume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := server(t, dir)
	b := "--brokers=" + s.addr

	if out := ok(t, "", "topic", "create", "orders", "--partitions", "3", "--config", "cleanup.policy=compact", b); out != "created orders\n" {
		t.Errorf("create: %q", out)
	}
	if out := ok(t, "", "topic", "list", b); out != "orders\n" {
		t.Errorf("list: %q", out)
	}
	if out := ok(t, "k1:a\nk2:b\nk1:c\n", "produce", "orders", "--key-separator", ":", b); out != "produced 3 records to orders\n" {
		t.Errorf("produce: %q", out)
	}
	out := ok(t, "", "consume", "orders", "--from-beginning", "--max-messages", "3", "--format", `%k=%v\n`, b)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.Contains(out, "k2=b\n") ||
		strings.Index(out, "k1=a") > strings.Index(out, "k1=c") {
		t.Errorf("consume: %q", out)
	}

	var d struct {
		Topic      string
		Partitions []struct{ Partition, Start, End int64 }
		Config     map[string]string
	}
	if err := json.Unmarshal([]byte(ok(t, "", "topic", "describe", "orders", "--output", "json", b)), &d); err != nil {
		t.Fatal(err)
	}
	var n int64
	for _, p := range d.Partitions {
		n += p.End - p.Start
	}
	if d.Topic != "orders" || len(d.Partitions) != 3 || n != 3 || d.Config["cleanup.policy"] != "compact" {
		t.Errorf("describe: %+v", d)
	}

	// Everything is there after a clean stop, by either signal.
	s.stop(t, syscall.SIGTERM)
	s = server(t, dir)
	b = "--brokers=" + s.addr
	out = ok(t, "", "consume", "orders", "--from-beginning", "--max-messages", "3", "--output", "json", b)
	for line := range strings.Lines(out) {
		var r struct {
			Topic      string
			Key, Value *string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Topic != "orders" || r.Key == nil || r.Value == nil {
			t.Errorf("consumed %q: %v", line, err)
		}
	}
	if out := ok(t, "", "topic", "delete", "orders", b); out != "deleted orders\n" {
		t.Errorf("delete: %q", out)
	}
	if out := ok(t, "", "topic", "list", b); out != "" {
		t.Errorf("list after deletion: %q", out)
	}
	s.stop(t, syscall.SIGINT)
}

func TestGroupGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	b := "--brokers=" + s.addr
	ok(t, "1\n2\n3\n4\n", "produce", "t", b)
	consume := func(n string) string {
		return ok(t, "", "consume", "t", "--group", "g", "--from-beginning", "--max-messages", n, b)
	}
	if first, second := consume("3"), consume("1"); first != "1\n2\n3\n" || second != "4\n" {
		t.Errorf("first %q, then %q", first, second)
	}
}

func TestTransactionIsVisibleAsAWhole(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	b := "--brokers=" + s.addr
	ok(t, "a\nb\n", "produce", "t", "--transactional-id", "x", b)
	for _, isolation := range []string{"read_committed", "read_uncommitted"} {
		out := ok(t, "", "consume", "t", "--from-beginning", "--max-messages", "2", "--isolation", isolation, b)
		if out != "a\nb\n" {
			t.Errorf("%s: %q", isolation, out)
		}
	}
	if out := ok(t, "", "consume", "t", "--idle", "300ms", b); out != "" {
		t.Errorf("from the end: %q", out)
	}
}

func TestExitCodesAndErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := server(t, dir)
	b := "--brokers=" + s.addr
	nobody := unused(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"server", "--data-dir", dir, "--listen", "127.0.0.1:0"}, 1, dir},
		{[]string{"server", "--listen", s.addr}, 1, s.addr},
		{[]string{"server", "--listen", "nowhere"}, 2, "nowhere"},
		{[]string{"server", "--log-level", "loud"}, 2, "loud"},
		{[]string{"server", "extra"}, 2, "no arguments"},
		{[]string{"topic", "create", b}, 2, "name of a topic"},
		{[]string{"topic", "create", "t", "--config", "x", b}, 2, "key=value"},
		{[]string{"topic", "create", "t", "--config", "no.such.key=1", b}, 1, "no.such.key"},
		{[]string{"topic", "create", "a/b", b}, 1, "a/b"},
		{[]string{"topic", "delete", "missing", b}, 1, "missing"},
		{[]string{"topic", "describe", "missing", b}, 1, "missing"},
		{[]string{"topic", "list", "--brokers", nobody, "--timeout", "500ms"}, 1, nobody},
		{[]string{"topic", "list", "--output", "xml", b}, 2, "xml"},
		{[]string{"produce", "t", "--acks", "2", b}, 2, "--acks"},
		{[]string{"produce", "t", "--transactional-id", "x", "--acks", "1", b}, 2, "transaction"},
		{[]string{"produce", "t", "--compression", "zip", b}, 2, "zip"},
		{[]string{"consume", "t", "--isolation", "none", b}, 2, "none"},
		{[]string{"consume", "t", "--max-messages", "-1", b}, 2, "-1"},
		{[]string{"consume", "t", "--format", "%", b}, 2, "--format"},
		{[]string{"consume", "--nope"}, 2, "nope"},
		{[]string{"consume", "t", "--timeout", "0s", b}, 2, "--timeout"},
		{[]string{"consum", "t"}, 2, `did you mean "consume"`},
		{[]string{"topic", "lists"}, 2, `did you mean "list"`},
		{[]string{"topic", "create", "t", "--replication-factor", "3", b}, 1, "INVALID_REPLICATION_FACTOR"},
	} {
		o := execute(t, "", c.args...)
		if o.code != c.code || !strings.Contains(o.errout, c.says) {
			t.Errorf("millrace %s: exit code %d, %q; want %d and %q", strings.Join(c.args, " "), o.code, o.errout, c.code, c.says)
		}
		if o.out != "" {
			t.Errorf("millrace %s: failed with %q on standard output", strings.Join(c.args, " "), o.out)
		}
	}
}

// unused is an address where nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	return l.Addr().String()
}

// A topic that is not there ends the command, where the client alone would wait.
func TestConsumeOfAMissingTopicEnds(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	b := "--brokers=" + s.addr
	for _, args := range [][]string{{}, {"--group", "g"}, {"--from-beginning", "--max-messages", "1"}} {
		o := execute(t, "", append([]string{"consume", "missing", b}, args...)...)
		if o.code != 1 || !strings.Contains(o.errout, "no topic missing at "+s.addr) || o.out != "" {
			t.Errorf("consume %v of a missing topic: exit code %d, %q", args, o.code, o.errout)
		}
	}
	if out := ok(t, "", "topic", "list", b); out != "" {
		t.Errorf("consume made a topic: %q", out)
	}
}

// With --wait-for-topic it waits, and a topic that goes away while it is read is
// an error again.
func TestConsumeWaitsForATopicIfAsked(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	b := "--brokers=" + s.addr
	got := make(chan outcome, 1)
	go func() {
		got <- execute(t, "", "consume", "later", "--wait-for-topic", "--from-beginning", "--max-messages", "1", b)
	}()
	ok(t, "hello\n", "produce", "later", b)
	if o := <-got; o.code != 0 || o.out != "hello\n" {
		t.Errorf("consume --wait-for-topic: %+v", o)
	}

	cmd := exec.Command(binary, "consume", "later", "--from-beginning", b)
	var errout bytes.Buffer
	cmd.Stderr = &errout
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() /* it may have ended */ })
	defer watch.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "hello\n" {
		t.Fatalf("first line %q, %v", line, err)
	}
	ok(t, "", "topic", "delete", "later", b)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errout.String(), "no topic later at "+s.addr) {
		t.Errorf("topic deleted under consume: %v, %q", err, errout.String())
	}
}

// Nobody there is an error that names the address, for every command.
func TestNoBroker(t *testing.T) {
	t.Parallel()
	nobody := unused(t)
	for _, args := range [][]string{{"consume", "t"}, {"produce", "t"}, {"topic", "list"}, {"topic", "create", "t"}} {
		o := execute(t, "line\n", append(args, "--timeout", "1s", "--brokers", nobody)...)
		if o.code != 1 || !strings.Contains(o.errout, nobody) || o.out != "" {
			t.Errorf("%v without a broker: exit code %d, %q %q", args, o.code, o.out, o.errout)
		}
	}
}

// A broker that dies while lines are under way does not hang the producer.
func TestProduceEndsWhenTheBrokerDies(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	cmd := exec.Command(binary, "produce", "t", "--timeout", "1s", "--brokers", s.addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errout bytes.Buffer
	cmd.Stderr = &errout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() /* it may have ended */ })
	defer watch.Stop()
	if _, err := in.Write([]byte("first\n")); err != nil {
		t.Fatal(err)
	}
	if out := ok(t, "", "consume", "t", "--wait-for-topic", "--from-beginning", "--max-messages", "1", "--brokers", s.addr); out != "first\n" {
		t.Fatalf("first line: %q", out)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // killed
	if _, err := in.Write([]byte("second\n")); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(errout.String(), s.addr) ||
		!strings.Contains(errout.String(), "acknowledged before: 1 record)") {
		t.Errorf("produce to a dead broker: %v, %q", err, errout.String())
	}
}

// A partition whose file is damaged is said to be so; the others go on.
func TestDamagedPartition(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := server(t, dir)
	b := "--brokers=" + s.addr
	ok(t, strings.Repeat("line\n", 100), "produce", "bad", b)
	ok(t, "line\n", "produce", "good", b)
	s.stop(t, syscall.SIGTERM)
	if err := os.Truncate(filepath.Join(dir, "bad-0", "00000000000000000000.log"), 100); err != nil {
		t.Fatal(err)
	}
	s = server(t, dir)
	b = "--brokers=" + s.addr
	if out := ok(t, "", "consume", "good", "--from-beginning", "--max-messages", "1", b); out != "line\n" {
		t.Errorf("the other topic: %q", out)
	}
	o := execute(t, "", "consume", "bad", "--from-beginning", "--max-messages", "1", b)
	if o.code != 1 || !strings.Contains(o.errout, "bad partition 0") || !strings.Contains(o.errout, "KAFKA_STORAGE_ERROR") || o.out != "" {
		t.Errorf("consume of a damaged partition: %+v", o)
	}
	if out := ok(t, "", "topic", "describe", "bad", b); !strings.Contains(out, "KAFKA_STORAGE_ERROR") {
		t.Errorf("describe of a damaged partition: %q", out)
	}
}

func TestHelpHasAnExample(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"server"}, {"topic"}, {"topic", "create"}, {"topic", "list"}, {"topic", "describe"},
		{"topic", "delete"}, {"produce"}, {"consume"}, {"version"}} {
		out := ok(t, "", append(args, "--help")...)
		_, example, found := strings.Cut(out, "Examples:\n")
		if !found || !strings.Contains(example, "millrace "+strings.Join(args, " ")) {
			t.Errorf("millrace %s --help has no example of it:\n%s", strings.Join(args, " "), out)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if out, flag := ok(t, "", "version"), ok(t, "", "--version"); out != flag {
		t.Errorf("version: %q, --version: %q", out, flag)
	}
	if out := ok(t, "", "version"); !strings.HasPrefix(out, "millrace ") {
		t.Errorf("version: %q", out)
	}
	var v struct{ Version, Go string }
	if err := json.Unmarshal([]byte(ok(t, "", "version", "-o", "json")), &v); err != nil || v.Version == "" || v.Go == "" {
		t.Errorf("version in JSON: %+v, %v", v, err)
	}
}
