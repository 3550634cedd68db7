// Command benchmarks prints the figures of the README: start, memory, produce and consume, synced acknowledgements,
// transactions, consume-transform-produce, restart after SIGKILL. It measures the server binary as a user runs it, over
// TCP on loopback, with franz-go as the client; client and server share the machine.
//
//	make bench
//	go run ./benchmarks -brokers 127.0.0.1:9092     # the same workloads on a running cluster of the Kafka protocol
//	go run ./benchmarks -only transactions,acks
//
// Figures of one machine in one run are compared with each other, never with those of another run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// workload is one row group of the table.
type workload struct {
	name string
	run  func(context.Context, *env) error
}

var workloads = []workload{
	{"start", benchStart},
	{"produce", benchProduceConsume},
	{"acks", benchAcks},
	{"transactions", benchTransactions},
	{"pipeline", benchPipeline},
	{"restart", benchRestart},
}

// env is what a workload gets: where the cluster is, how long to run, and where results go.
type env struct {
	server  *server // nil when measuring a cluster by address
	seeds   []string
	seconds time.Duration // length of each timed workload
	rows    []row
}

type row struct{ what, figure string }

func (e *env) add(what, format string, args ...any) {
	r := row{what, fmt.Sprintf(format, args...)}
	e.rows = append(e.rows, r)
	fmt.Printf("%-58s %s\n", r.what, r.figure)
}

func (e *env) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(e.seeds...)}, opts...)...)
}

// topic creates a fresh topic and returns its name.
func (e *env) topic(ctx context.Context, what string, partitions int32) (string, error) {
	cl, err := e.client()
	if err != nil {
		return "", err
	}
	defer cl.Close()
	name := fmt.Sprintf("bench-%s-%d", what, time.Now().UnixNano())
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, name)
	return name, err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run() error {
	brokers := flag.String("brokers", "", "measure this cluster (host:port,…) instead of our own server binary")
	only := flag.String("only", "", "comma-separated workloads: start,produce,acks,transactions,pipeline,restart")
	seconds := flag.Duration("seconds", 4*time.Second, "length of each timed workload")
	dir := flag.String("dir", "", "data folder of the server (default: a temporary folder, removed at the end)")
	flag.Parse()

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()

	e := &env{seconds: *seconds}
	if *brokers != "" {
		e.seeds = strings.Split(*brokers, ",")
	} else {
		s, err := newServer(ctx, *dir)
		if err != nil {
			return err
		}
		defer s.remove()
		e.server = s
		if err := s.start(ctx); err != nil {
			return err
		}
		e.seeds = []string{s.addr}
	}
	chosen := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, w := range workloads {
		if len(chosen) > 0 && !slices.Contains(chosen, w.name) {
			continue
		}
		if err := w.run(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}
