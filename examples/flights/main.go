// Command flights is the main job of Millrace on real data: 20,000 flights and 3,376 airports go from files into topics,
// through a stream job that joins, groups and aggregates them, and into an SQLite table, exactly once, while the process
// that does it all is killed again and again. See docs/demo.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "flights:", err)
		os.Exit(1)
	}
}

func run() error {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if o.child {
		return child(ctx, o, os.Stdout)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "millrace-flights-"); err != nil {
			return err
		}
	} else if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	if err := unpack(o.dir); err != nil {
		return err
	}
	answer, flights, airports, err := plainLoop()
	if err != nil {
		return err
	}
	o.flights = flights
	fmt.Printf("%d flights and %d airports → topics → stream job → SQLite; %d kills, seed %d\n", flights, airports, o.kills, o.seed)
	kills, err := supervise(ctx, o, flights)
	if err != nil {
		return err
	}
	return conclude(ctx, o, answer, flights, kills)
}
