package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/millrace/millrace/broker/inspect"
)

func newLogVerify() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "verify DIR...",
		Short: "Check every batch, and everything that is derived from them",
		Long: `verify reads everything in a data folder, or in the folder of one partition, and changes nothing. It checks the checksum
and the place of every batch, gaps between them, leader epochs, that every index entry is true, transaction indexes
and snapshots against a replay of the log, the records of the coordinators, and all of it against what the recovery
journal (or Kafka's checkpoints) says was durable.

Each finding names topic-partition, file, byte and offset, and how bad it is:
  damage       something that was durable is gone or wrong
  torn tail    bytes that were never acknowledged; the next start cuts them off
  rebuildable  derived data that is wrong; "millrace log repair" makes it anew
  note         worth knowing, and no fault

Exit codes: 0 nothing but notes, 1 something was found, 2 the command line makes no sense or files can not be read.`,
		Example: `  millrace log verify ./data
  millrace log verify --quiet --output json ./data/orders-0 ./data/orders-1`,
		Args: atLeast(1, "a data folder or the folder of a partition"),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			v := verifier{printer: newPrinter(cmd), quiet: quiet}
			for _, dir := range dirs {
				if err := v.folder(dir); err != nil {
					return ioError(err)
				}
			}
			return v.summary()
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print no notes")
	return cmd
}

// verifier prints findings and counts them.
type verifier struct {
	printer
	quiet      bool
	partitions int
	bytes      int64
	counts     [inspect.Damage + 1]int
}

func (v *verifier) folder(dir string) error {
	d, err := openData(dir)
	if err != nil {
		return err
	}
	size, err := dataBytes(d)
	if err != nil {
		return err
	}
	v.partitions += len(d.Partitions)
	v.bytes += size
	bar := newByteBar(size)
	defer bar.done()
	var failed error
	err = d.Verify(inspect.VerifyOptions{Progress: bar.add}, func(f inspect.Finding) {
		v.counts[f.Severity]++
		if v.quiet && f.Severity == inspect.Note {
			return
		}
		bar.clear()
		failed = errors.Join(failed, v.print(f, "%s", f))
	})
	return errors.Join(err, failed)
}

// verified is the last line of a verification.
type verified struct {
	Partitions  int   `json:"partitions"`
	Bytes       int64 `json:"bytes"`
	Clean       bool  `json:"clean"`
	Damage      int   `json:"damage"`
	TornTails   int   `json:"torn_tails"`
	Rebuildable int   `json:"rebuildable"`
	Notes       int   `json:"notes"`
}

func (v *verifier) summary() error {
	s := verified{
		Partitions: v.partitions, Bytes: v.bytes,
		Damage: v.counts[inspect.Damage], TornTails: v.counts[inspect.TornTail],
		Rebuildable: v.counts[inspect.Rebuildable], Notes: v.counts[inspect.Note],
	}
	s.Clean = s.Damage+s.TornTails+s.Rebuildable == 0
	text := "clean"
	if !s.Clean {
		text = fmt.Sprintf("%d damage, %s, %d rebuildable", s.Damage, counted(int64(s.TornTails), "torn tail"), s.Rebuildable)
	}
	if err := v.print(s, "%s: %s, %d bytes of logs", text, counted(int64(s.Partitions), "partition"), s.Bytes); err != nil {
		return err
	}
	if !s.Clean {
		return errFound
	}
	return nil
}

// dataBytes is how much of logs there is to read.
func dataBytes(d *inspect.Data) (int64, error) {
	var sum int64
	for _, p := range d.Partitions {
		n, err := p.Bytes()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// byteBar shows how much was read, while a person waits.
type byteBar struct{ bar *progressbar.ProgressBar }

func newByteBar(total int64) byteBar {
	if !isTerminal(os.Stderr) {
		return byteBar{}
	}
	return byteBar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription("verifying"),
		progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(barPace))}
}

func (b byteBar) add(n int64) {
	if b.bar != nil {
		_ = b.bar.Add64(n) // a bar that can not be drawn is not worth an error
	}
}

// clear makes room for a line.
func (b byteBar) clear() {
	if b.bar != nil {
		_ = b.bar.Clear() // as add
	}
}

func (b byteBar) done() {
	if b.bar != nil {
		_ = b.bar.Finish() // as add
	}
}
