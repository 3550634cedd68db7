// Command benchmarks measures brokers as a user runs them: the server binary, over TCP on loopback, with franz-go as the
// client; client and server share the machine.
//
//	make bench                                       # our server alone
//	make bench-peers                                 # our server, Apache Kafka and the client's ceiling in turn, into RESULTS.md
//	make bench-alone                                 # what has to stay flat, and what has to stay bounded, into ALONE.md
//	make profile-produce                             # one workload on our server, pprof files into bin/profiles
//	go run ./benchmarks -brokers 127.0.0.1:9092      # the same workloads on a running cluster of the Kafka protocol
//	go run ./benchmarks -only transactions,acks
//
// Figures of one machine in one run are compared with each other, never with those of another run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/millrace/millrace/benchmarks/rig"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run() error {
	f, err := parse()
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	switch {
	case f.kfake != "":
		return serveKfake(ctx, f.kfake)
	case f.brokers != "":
		return measureCluster(ctx, f)
	}
	if f.dir != "" {
		if err := os.MkdirAll(f.dir, 0o755); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp(f.dir, "millrace-bench-")
	if err != nil {
		return err
	}
	defer func() {
		if err := os.RemoveAll(work); err != nil {
			fmt.Fprintln(os.Stderr, "benchmarks:", err)
		}
	}()
	bin := f.server
	if bin != "" {
		if _, err := os.Stat(bin); err != nil {
			return fmt.Errorf("-server: %w", err)
		}
	} else {
		if bin, err = rig.BuildMillrace(ctx, work); err != nil {
			return err
		}
	}
	switch {
	case f.kafka != "":
		return comparePeers(ctx, f, work, bin)
	case f.profile != "":
		return profile(ctx, f, work, bin)
	case f.alone:
		return measureAlone(ctx, f, work, bin)
	}
	s := &stage{work: work, seconds: f.seconds, only: f.only, out: os.Stdout, tables: newTables(brokerWork(), nil)}
	return s.turn(ctx, contender{side: ourSide, start: func(dir string) (*rig.Process, error) { return rig.Millrace(bin, dir) }}, brokerWork(), 0)
}
