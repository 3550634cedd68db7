package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/txn/twophase"
	"github.com/millrace/millrace/txn/twophase/postgres/pgtest"
)

// role makes this test binary run as another program: the example itself, or a broker.
const role = "MILLRACE_TWO_PHASE_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "program":
		main()
	case "broker":
		if err := runBroker(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// runBroker serves a folder until it is killed.
func runBroker(dir, listen string) error {
	b, err := broker.Start(context.Background(), broker.Config{
		Dir: dir, Listen: listen, TransactionTwoPhaseCommit: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	fmt.Println(b.Addr())
	select {}
}

// patience bounds every wait; only a fault reaches it.
const patience = 2 * time.Minute

// world is a PostgreSQL, a broker and the example, each a process.
type world struct {
	t       *testing.T
	decides string
	pg      *pgtest.Server
	dir     string
	addr    string
	broker  *exec.Cmd
	program *program
	target  int // payments so far
}

func newWorld(t *testing.T, decides string) *world {
	t.Helper()
	w := &world{t: t, decides: decides, pg: pgtest.Start(t), dir: t.TempDir(), addr: "127.0.0.1:0"}
	w.startBroker()
	t.Cleanup(func() {
		if w.program != nil {
			w.killProgram()
		}
		w.killBroker()
	})
	return w
}

func (w *world) startBroker() {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], w.dir, w.addr)
	cmd.Env = append(os.Environ(), role+"=broker")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		w.t.Fatalf("the broker says nothing: %v", err)
	}
	w.addr, w.broker = strings.TrimSpace(line), cmd
}

func (w *world) killBroker() {
	w.t.Helper()
	if err := w.broker.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	_ = w.broker.Wait() // it says that it was killed
}

// program is the example as a process.
type program struct {
	cmd    *exec.Cmd
	stdin  *os.File
	lines  chan string
	stderr strings.Builder
}

// run starts the example, to make payments up to a number; it stops at a step of its first payment if one is named.
func (w *world) run(payments int, pauseAt twophase.Step) {
	w.t.Helper()
	p := &program{lines: make(chan string, 16)}
	p.cmd = exec.Command(os.Args[0], "-postgres", w.pg.DSN(), "-brokers", w.addr, "-decides", w.decides, "-payments", strconv.Itoa(payments),
		"-pause-at", string(pauseAt), "-pause-of", "1")
	p.cmd.Env = append(os.Environ(), role+"=program")
	p.cmd.Stderr = &p.stderr
	in, stdin, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	p.cmd.Stdin, p.stdin = in, stdin
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		w.t.Error(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	w.program = p
}

// await waits for a line of the program.
func (w *world) await(want string) {
	w.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, ok := <-w.program.lines:
			if !ok {
				err := w.program.cmd.Wait()
				w.t.Fatalf("the program ended before it said %q: %v\n%s", want, err, w.program.stderr.String())
			}
			if strings.Contains(line, want) {
				return
			}
		case <-limit:
			w.t.Fatalf("the program does not say %q", want)
		}
	}
}

// wake lets a program go on that has stopped at a step.
func (w *world) wake() {
	w.t.Helper()
	if _, err := w.program.stdin.WriteString("\n"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) killProgram() {
	w.t.Helper()
	if err := w.program.cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	w.ended(true)
}

// ended waits for the end of the program.
func (w *world) ended(killed bool) {
	w.t.Helper()
	p := w.program
	w.program = nil
	for range p.lines { // until it closes its output
	}
	err := p.cmd.Wait()
	if err := p.stdin.Close(); err != nil {
		w.t.Error(err)
	}
	var exit *exec.ExitError
	if err != nil && !(killed && errors.As(err, &exit)) {
		w.t.Fatalf("the program: %v\n%s", err, p.stderr.String())
	}
	if strings.Contains(p.stderr.String(), "DATA RACE") {
		w.t.Fatal(p.stderr.String())
	}
}

// check compares rows and records, with nobody at work.
func (w *world) check() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	pool, err := pgxpool.New(ctx, w.pg.DSN())
	if err != nil {
		w.t.Fatal(err)
	}
	defer pool.Close()
	if err := check(ctx, pool, twophase.Brokers(w.addr)); err != nil {
		w.t.Fatal(err)
	}
}
