// Command streams measures stream jobs side by side: on Kafka Streams, on goka and on Millrace streams over Apache Kafka,
// and on Millrace streams over its own broker. Every job runs as a process of its own beside a broker that is one too; its
// results are compared with what the input says, and a run with a wrong result counts for nothing.
//
//	make bench-streams                               # the jobs, latency, restart, many keys, into STREAMS.md
//	make bench-nexmark                               # Nexmark q0 to q8, into NEXMARK.md
//	go run ./benchmarks/streams -only count          # some of the work
//	go run ./benchmarks/streams -kafka bin/kafka -scale 0.1 -rounds 1
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
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if len(os.Args) > 1 && os.Args[1] == jobWord {
		s, err := readSpec(os.Args[2:])
		if err != nil {
			return err
		}
		return beJob(ctx, s, os.Stdin, os.Stdout)
	}
	f, err := parse(names(allWork(false)), names(allWork(true)))
	if err != nil {
		return err
	}
	if f.dir != "" {
		if err := os.MkdirAll(f.dir, 0o755); err != nil {
			return err
		}
	}
	work, err := os.MkdirTemp(f.dir, "millrace-streams-")
	if err != nil {
		return err
	}
	defer func() {
		if err := os.RemoveAll(work); err != nil {
			fmt.Fprintln(os.Stderr, "streams:", err)
		}
	}()
	if f.server == "" {
		if f.server, err = rig.BuildMillrace(ctx, work); err != nil {
			return err
		}
	}
	if f.kafka != "" {
		if f.classes, err = compileJava(ctx, f.kafka, f.java, work); err != nil {
			return err
		}
	}
	return measure(ctx, f, work)
}
