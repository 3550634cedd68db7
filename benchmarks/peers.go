package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/rig"
)

// comparePeers measures our server, Apache Kafka and the client's ceiling in turn, each round on fresh folders. The page
// is written after every workload, so a run that is cut short leaves what it has.
func comparePeers(ctx context.Context, f flags, work, bin string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.limit, fmt.Errorf("the run's limit of %v is over", f.limit))
	defer cancel()
	all := append(brokerWork(), diskWork()...)
	t := newTables(all, section3)
	t.head = "# Measured beside Apache Kafka\n\nWritten by `make bench-peers`; no figure here is typed by hand. What is compared, and how fairly: [README.md](README.md).\n\n" +
		rig.Setting(ctx, work, append([]rig.Line{
			{What: "client", Value: "franz-go " + rig.ModuleVersion("github.com/twmb/franz-go") + ", on the same machine, over TCP on loopback, no compression"},
			{What: "client's ceiling", Value: "kfake " + rig.ModuleVersion("github.com/twmb/franz-go/pkg/kfake") + ", in memory, a process of its own"},
		}, append(rig.KafkaLines(ctx, f.kafka),
			rig.Line{What: "timed part of a workload", Value: fmt.Sprintf("%v, after a warm-up that is not counted", f.seconds)})...)...)
	s := &stage{work: work, seconds: f.seconds, only: f.only, out: os.Stdout, tables: t}
	if f.results != "" {
		s.save = func() error { return figures.ReplaceFile(f.results, t.page()) }
	}
	brokers := []contender{
		{side: ourSide, start: func(dir string) (*rig.Process, error) { return rig.Millrace(bin, dir) }},
		{side: kafkaSide, start: func(dir string) (*rig.Process, error) { return rig.Kafka(f.kafka, dir) }},
		{side: clientSide, start: func(string) (*rig.Process, error) { return ceiling() }, skip: map[string]bool{"start": true, "topics": true, "restart": true}},
	}
	began := time.Now()
	for round := range f.rounds {
		if ctx.Err() != nil {
			break
		}
		if err := s.disk(ctx); err != nil {
			return err
		}
		for i := range brokers {
			if ctx.Err() != nil {
				break
			}
			c := brokers[(i+round)%len(brokers)] // whoever begins changes from round to round
			t.state = fmt.Sprintf("broken off in round %d of %d, at %s, after %v", round+1, f.rounds, c.side, time.Since(began).Round(time.Second))
			fmt.Fprintf(s.out, "\n-- round %d of %d: %s (%v)\n", round+1, f.rounds, c.side, time.Since(began).Round(time.Second))
			if err := s.turn(ctx, c, brokerWork(), round); err != nil {
				return err
			}
		}
	}
	t.state = fmt.Sprintf("complete, %d rounds in %v", f.rounds, time.Since(began).Round(time.Second))
	if ctx.Err() != nil {
		t.state = fmt.Sprintf("broken off, %v", context.Cause(ctx))
	}
	fmt.Fprintf(s.out, "\n%s", t.page())
	if s.save == nil {
		return nil
	}
	return s.save()
}
