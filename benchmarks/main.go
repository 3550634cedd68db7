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
