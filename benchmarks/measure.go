package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// flags are the program's.
type flags struct {
	brokers, only, kafka, results string
	seconds                       time.Duration
	rounds                        int
}

// workload is one group of rows of the table.
type workload struct {
	name string
	run  func(context.Context, *env) error
}

var workloads = []workload{
	{"start", benchStart},
	{"produce", benchProduceConsume},
	{"acks", benchAcks},
	{"paced", benchPaced},
	{"transactions", benchTransactions},
	{"pipeline", benchPipeline},
	{"topics", benchTopics},
	{"restart", benchRestart},
}

// measureProcess starts a broker, runs the workloads against it and kills it.
func measureProcess(ctx context.Context, p *process, seconds time.Duration, only string) (figures []figure, err error) {
	defer func() {
		if kerr := p.kill(); err == nil {
			err = kerr
		}
	}()
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	e := &env{broker: p, seeds: []string{p.addr}, seconds: seconds, out: os.Stdout}
	if err := measure(ctx, e, only); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return e.figures, nil
}

func measure(ctx context.Context, e *env, only string) error {
	chosen := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
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
