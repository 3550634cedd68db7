package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// comparePeers measures our server and Apache Kafka alternately, each round on fresh folders, and writes medians, spread
// and ratios.
func comparePeers(ctx context.Context, f flags, work, bin string) error {
	sides := []struct {
		name string
		make func(dir string) (*process, error)
	}{
		{"Millrace", func(dir string) (*process, error) { return millrace(bin, dir) }},
		{"Apache Kafka", func(dir string) (*process, error) { return kafka(f.kafka, dir) }},
	}
	values := map[string][2][]float64{} // by figure, by side, by round
	var order []figure
	for round := range f.rounds {
		for s := range sides {
			side := (s + round) % 2 // whoever begins changes from round to round
			dir := filepath.Join(work, fmt.Sprintf("%d-%d", round, side))
			p, err := sides[side].make(dir)
			if err != nil {
				return err
			}
			fmt.Printf("\n-- round %d of %d: %s\n", round+1, f.rounds, p.name)
			figures, err := measureProcess(ctx, p, f.seconds, f.only)
			if err != nil {
				return err
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			for _, fig := range figures {
				both, known := values[fig.name]
				if !known {
					order = append(order, fig)
				}
				both[side] = append(both[side], fig.value)
				values[fig.name] = both
			}
		}
	}
	table := peersTable(f, order, values)
	fmt.Printf("\n%s", table)
	if f.results == "" {
		return nil
	}
	return os.WriteFile(f.results, []byte(table), 0o644)
}

func peersTable(f flags, order []figure, values map[string][2][]float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Measured beside Apache Kafka\n\nWritten by `make bench-peers` on %s; no figure here is typed by hand. %d rounds in turn, each on fresh folders, %v a\nworkload; "+
		"medians, in brackets the lowest and the highest round. Client: franz-go on the same machine (%s/%s, %d cores, %s).\nMillrace answers acks=all after fsync; Kafka as shipped does not, "+
		"and in the rows that say synced runs with flush.messages=1.\nRatio: Millrace against Kafka, so below 1 is better where less is better (marked ↓).\n\n",
		time.Now().UTC().Format(time.DateOnly), f.rounds, f.seconds, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	b.WriteString("| work | Millrace | Apache Kafka | ratio |\n|---|---|---|---|\n")
	for _, fig := range order {
		v := values[fig.name]
		if len(v[0]) == 0 || len(v[1]) == 0 {
			continue
		}
		ours, theirs := spreadOf(v[0]), spreadOf(v[1])
		ratio, mark := "", ""
		if theirs.median > 0 {
			ratio = fmt.Sprintf("%.2f", ours.median/theirs.median)
		}
		if fig.less {
			mark = " ↓"
		}
		fmt.Fprintf(&b, "| %s%s | %s | %s | %s |\n", fig.name, mark, cell(ours, fig.unit), cell(theirs, fig.unit), ratio)
	}
	return b.String()
}

func cell(s spread, unit string) string {
	return fmt.Sprintf("%s (%s … %s)", format(s.median, unit), format(s.low, unit), format(s.high, unit))
}
