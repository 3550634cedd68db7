// Command cmd runs one seed of the simulation, or seeds from a number on until one fails.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/millrace/millrace/broker/internal/sim"
)

func main() {
	seed := flag.Uint64("seed", 1, "the seed, or the first one")
	count := flag.Uint64("count", 1, "how many seeds, one after the other; 0 is until one fails")
	trace := flag.Bool("trace", false, "print everything that happens")
	steps := flag.Int("steps", 0, "for how many steps things go wrong; 0 is the default")
	flag.Parse()
	if err := run(*seed, *count, *steps, *trace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(seed, count uint64, steps int, trace bool) error {
	o := sim.Options{Steps: steps}
	var out *bufio.Writer
	if trace {
		out = bufio.NewWriter(os.Stdout)
		o.Trace, o.Log = out, slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: noTime})
	}
	began, said := time.Now(), time.Now()
	total, runs := 0, uint64(0)
	for ; count == 0 || runs < count; runs++ {
		o.Seed = seed + runs
		r, err := sim.Run(o)
		if out != nil {
			if ferr := out.Flush(); ferr != nil {
				return ferr
			}
		}
		if err != nil {
			return fmt.Errorf("%w\nagain with: go run ./broker/internal/sim/cmd -seed %d -trace", err, o.Seed)
		}
		total += r.Steps
		if count == 1 {
			r.Seen = nil
			fmt.Printf("seed %d: %+v\n", o.Seed, r)
		}
		if time.Since(said) > time.Minute {
			said = time.Now()
			report(os.Stdout, runs+1, total, time.Since(began))
		}
	}
	if count != 1 {
		report(os.Stdout, runs, total, time.Since(began))
	}
	return nil
}

func report(w io.Writer, runs uint64, steps int, took time.Duration) {
	fmt.Fprintf(w, "%d seeds in %v: %.0f a minute, %d steps each\n", runs, took.Round(time.Second), float64(runs)/took.Minutes(), uint64(steps)/max(runs, 1))
}

// noTime leaves out the machine's time, which differs from run to run.
func noTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
