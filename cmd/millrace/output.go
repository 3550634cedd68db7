package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// printer writes results in the form that --output asks for.
type printer struct {
	w    io.Writer
	json bool
}

func newPrinter(cmd *cobra.Command) printer {
	return printer{w: cmd.OutOrStdout(), json: cmd.Flag("output").Value.String() == "json"}
}

// print writes one result: v as a line of JSON, or the text.
func (p printer) print(v any, format string, args ...any) error {
	if !p.json {
		_, err := fmt.Fprintf(p.w, format+"\n", args...)
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = p.w.Write(append(b, '\n'))
	return err
}

// counted is a number with its noun.
func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// isTerminal says whether a person looks at f.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progress counts records on standard error while a person waits there.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(what string) progress {
	if !isTerminal(os.Stderr) {
		return progress{}
	}
	return progress{progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish())}
}

func (p progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // a bar that can not be drawn is not worth an error
	}
}

func (p progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish() // as add
	}
}
