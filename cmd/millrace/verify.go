package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/txn/history"
	"github.com/millrace/millrace/txn/history/workload"
)

// verifyFlags are the options of verify.
type verifyFlags struct {
	seconds, round int
	options        workload.Options
	history, check string
	workload       string
}

func newVerify() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that a cluster keeps its promises",
		Long: `Lets clients send, poll and commit in transactions for a while, in topics of its
own, and then decides from what they did and saw whether anything was lost, doubled,
shown although aborted, torn, reordered or consumed twice. It is Jepsen's workload
for Kafka, with checks of group offsets and watermarks added. The cluster may be any
that speaks the protocol; disturb it meanwhile as you like, but let it be well when
the seconds are over: what does not work again within --patience is a finding.

Other workloads know their result in advance and need no history: bank moves money
between partitions, copy copies a topic as a group, counter adds up what is in it,
order counts in keys, and unique hands out offsets as ids.

The work is done in rounds of --round seconds, each in fresh topics, read to the end
and judged on its own. --history keeps what happened, in a text form that --check
judges again.

Exit code 1 means that an anomaly was found, or that nothing could be tried.`,
		Example: `  millrace verify --seconds 60
  millrace verify --brokers broker-1:9092 --clients 16 --history history.txt
  millrace verify --check history.txt`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			companion, known := companions[f.workload]
			switch {
			case !known:
				return badUsage("--workload is %q, must be history, bank, copy, counter, order or unique", f.workload)
			case f.check != "":
				return f.checkFile(cmd)
			case companion != nil:
				return f.runCompanion(cmd, companion)
			}
			return f.run(cmd)
		},
	}
	addClientFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.workload, "workload", "history", "what the clients do: history, bank, copy, counter, order or unique")
	fl.IntVar(&f.seconds, "seconds", 20, "how long the clients work")
	fl.IntVar(&f.round, "round", 60, "seconds of a round at most")
	fl.IntVar(&f.options.Clients, "clients", 8, "how many work at the same time")
	fl.Uint64Var(&f.options.Seed, "seed", 0, "decides what they do; 0 takes one at random")
	fl.IntVar(&f.options.Topics, "topics", 2, "how many topics to work in")
	fl.IntVar(&f.options.Partitions, "partitions", 3, "partitions of each topic")
	fl.DurationVar(&f.options.Patience, "patience", time.Minute, "how long clients have to work again and to read everything in the end")
	fl.IntVar(&f.options.CutOneIn, "cut", 0, "cut the connection of one in so many requests; 0 cuts none")
	fl.IntVar(&f.options.DelayOneIn, "delay", 0, "delay one in so many requests and answers; 0 delays none")
	fl.IntVar(&f.options.LateOneIn, "late", 0, "let one in so many requests of producers arrive seconds late, on another connection; 0 lets none")
	fl.BoolVar(&f.options.OnlyVersion2, "only-v2", false, "no clients of transaction version 1, which lost connections can harm on any broker (KAFKA-17754)")
	fl.BoolVar(&f.options.Keep, "keep", false, "leave the topics there")
	fl.StringVar(&f.history, "history", "", "file to write the history to")
	fl.StringVar(&f.check, "check", "", "judge the history in this file, and ask no broker")
	return cmd
}

// prepare checks the flags and that there is a cluster.
func (f *verifyFlags) prepare(cmd *cobra.Command) error {
	if f.seconds < 1 || f.round < 1 {
		return badUsage("--seconds is %d and --round %d, both must be at least 1", f.seconds, f.round)
	}
	f.options.Seeds = seedList(cmd)
	if err := f.options.Validate(); err != nil {
		return usageError{err}
	}
	if f.options.Seed == 0 {
		f.options.Seed = rand.Uint64()>>1 | 1
	}
	cl, err := newClient(cmd)
	if err != nil {
		return err
	}
	defer cl.Close()
	return reach(cmd, cl)
}

// run works and judges round after round.
func (f *verifyFlags) run(cmd *cobra.Command) (err error) {
	if err := f.prepare(cmd); err != nil {
		return err
	}
	keep, err := newHistoryFile(f.history)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keep.close()) }()
	rounds := (f.seconds + f.round - 1) / f.round
	verdict := verdict{Seed: f.options.Seed, rounds: rounds}
	for n := range rounds {
		if n > 0 && cmd.Context().Err() != nil {
			break
		}
		events, err := f.work(cmd.Context(), n, rounds)
		if err != nil {
			return err
		}
		seed := f.options.Seed + uint64(n)
		if err := keep.write(n, seed, events); err != nil {
			return err
		}
		if err := verdict.judge(newPrinter(cmd), seed, events); err != nil {
			return err
		}
	}
	return verdict.end(newPrinter(cmd))
}

// work is the n-th round.
func (f *verifyFlags) work(ctx context.Context, n, rounds int) ([]history.Event, error) {
	o := f.options
	o.Seed += uint64(n)
	seconds := min(f.round, f.seconds-n*f.round)
	o.Duration = time.Duration(seconds) * time.Second
	label := "verify"
	if rounds > 1 {
		label = fmt.Sprintf("verify, round %d of %d", n+1, rounds)
	}
	bar := newTimeBar(label, o.Duration)
	o.Progress = bar.show
	defer bar.done()
	return workload.Run(ctx, o)
}

// checkFile judges a history that was kept.
func (f *verifyFlags) checkFile(cmd *cobra.Command) error {
	file, err := os.Open(f.check)
	if err != nil {
		return err
	}
	defer file.Close()
	kept, err := readRounds(file)
	if err != nil {
		return fmt.Errorf("%s: %w", f.check, err)
	}
	verdict := verdict{rounds: len(kept)}
	for _, k := range kept {
		verdict.Seed = kept[0].seed
		if err := verdict.judge(newPrinter(cmd), k.seed, k.events); err != nil {
			return fmt.Errorf("%s: %w", f.check, err)
		}
	}
	return verdict.end(newPrinter(cmd))
}
