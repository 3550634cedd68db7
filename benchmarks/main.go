// Command benchmarks measures brokers as a user runs them: the server binary, over TCP on loopback, with franz-go as the
// client; client and server share the machine.
//
//	make bench                                       # our server alone
//	make bench-peers                                 # our server and Apache Kafka in turn, ratios into RESULTS.md
//	go run ./benchmarks -brokers 127.0.0.1:9092      # the same workloads on a running cluster of the Kafka protocol
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
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run() error {
	var f flags
	flag.StringVar(&f.brokers, "brokers", "", "measure this cluster (host:port,…) instead of our own server binary")
	flag.StringVar(&f.only, "only", "", "comma-separated workloads: start,produce,acks,paced,transactions,pipeline,topics,restart")
	flag.DurationVar(&f.seconds, "seconds", 4*time.Second, "length of each timed workload")
	flag.StringVar(&f.kafka, "kafka", "", "folder of Apache Kafka's jars: measure it and our server in turn")
	flag.IntVar(&f.rounds, "rounds", 3, "rounds of -kafka, at least 1")
	flag.StringVar(&f.results, "results", "", "write the table of -kafka to this file")
	flag.Parse()
	if f.rounds < 1 {
		return fmt.Errorf("-rounds is %d, must be at least 1", f.rounds)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if f.brokers != "" {
		return measure(ctx, &env{seeds: strings.Split(f.brokers, ","), seconds: f.seconds, out: os.Stdout}, f.only)
	}
	work, err := os.MkdirTemp("", "millrace-bench-")
	if err != nil {
		return err
	}
	defer func() {
		if err := os.RemoveAll(work); err != nil {
			fmt.Fprintln(os.Stderr, "benchmarks:", err)
		}
	}()
	bin, err := buildMillrace(ctx, work)
	if err != nil {
		return err
	}
	if f.kafka != "" {
		return comparePeers(ctx, f, work, bin)
	}
	p, err := millrace(bin, filepath.Join(work, "data"))
	if err != nil {
		return err
	}
	_, err = measureProcess(ctx, p, f.seconds, f.only)
	return err
}
