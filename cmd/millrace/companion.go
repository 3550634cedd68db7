package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/txn/history/workload"
)

// companions are the workloads of verify whose result is known in advance. The history
// is the one that is none.
var companions = map[string]func(context.Context, workload.Options) (workload.Outcome, error){
	"history": nil,
	"bank":    workload.Bank,
	"copy":    workload.Copy,
	"counter": workload.Counter,
	"order":   workload.Order,
	"unique":  workload.Unique,
}

// companionResult is what verify prints of one.
type companionResult struct {
	Valid    bool     `json:"valid"`
	Seed     uint64   `json:"seed"`
	Workload string   `json:"workload"`
	Summary  string   `json:"summary"`
	Found    int      `json:"found"`
	Findings []string `json:"findings"`
}

func (f *verifyFlags) runCompanion(cmd *cobra.Command, run func(context.Context, workload.Options) (workload.Outcome, error)) error {
	if f.history != "" {
		return badUsage("--history: workload %s keeps none", f.workload)
	}
	if err := f.prepare(cmd); err != nil {
		return err
	}
	f.options.Duration = time.Duration(f.seconds) * time.Second
	bar := newTimeBar("verify "+f.workload, f.options.Duration)
	f.options.Progress = bar.show
	out, err := run(cmd.Context(), f.options)
	bar.done()
	if err != nil {
		return err
	}
	r := companionResult{out.Found == 0, f.options.Seed, f.workload, out.Summary, out.Found, out.Findings}
	verdict := "Nothing is wrong."
	if !r.Valid {
		verdict = fmt.Sprintf("%s, the first:\n  - %s", counted(int64(out.Found), "finding"), strings.Join(out.Findings, "\n  - "))
	}
	if err := newPrinter(cmd).print(r, "Seed %d.\n%s.\n%s", r.Seed, r.Summary, verdict); err != nil {
		return err
	}
	if !r.Valid {
		return fmt.Errorf("%w (seed %d)", errAnomalies, r.Seed)
	}
	return nil
}
