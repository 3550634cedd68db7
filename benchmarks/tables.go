package main

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/benchmarks/figures"
)

// tables are the pages that a run writes, from what its rounds found. They have one owner, the loop over the rounds.
type tables struct {
	*figures.Collected
	all   []workload
	rows  []row
	head  string
	state string // how far the run is
}

func newTables(all []workload, rows []row) *tables {
	return &tables{Collected: figures.NewCollected(), all: all, rows: rows}
}

// page is the whole file.
func (t *tables) page() string {
	var b strings.Builder
	b.WriteString(t.head)
	fmt.Fprintf(&b, "\nState of the run: %s.\n", t.state)
	t.asked(&b)
	t.everything(&b)
	return b.String()
}

// asked is the table of goals.
func (t *tables) asked(b *strings.Builder) {
	b.WriteString("\n## What is asked for\n\nSync: when an acknowledgement leaves, ours / Kafka's. Medians, in brackets the lowest and the highest round. ↓: less is better.\n" +
		"A row is also reached where ours is at 90 % of the client's own ceiling (the same work on an in-memory broker that syncs nothing).\n\n" +
		"| work | sync | Millrace | Apache Kafka | ratio | at least | reach for | reached | client's ceiling |\n|---|---|---|---|---|---|---|---|---|\n")
	reached, asked := 0, 0
	for _, r := range t.rows {
		f, _ := named(t.all, r.figure)
		v := r.judge(t.Collected, f)
		mark, limit, theirs := "", "", t.Cell(kafkaSide, f)
		if f.Less {
			mark = " ↓"
		}
		if r.own {
			other, _ := named(t.all, r.against)
			theirs = "ours: " + t.Cell(ourSide, other)
		}
		if r.client {
			limit = t.Cell(clientSide, f)
		}
		if r.disk != "" {
			d, _ := named(t.all, r.disk)
			limit += "; the disk's: " + t.Cell(diskSide, d)
		}
		if r.atLeast.Asked() {
			asked++
			if strings.HasPrefix(v.said, "yes") {
				reached++
			}
		}
		fmt.Fprintf(b, "| %s%s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.what, mark, r.sync, t.Cell(ourSide, f), theirs, v.ratio, r.atLeast, r.reach, v.said, limit)
	}
	fmt.Fprintf(b, "\n%d of %d rows reached.\n", reached, asked)
	for _, s := range sides {
		for _, w := range t.all {
			for _, f := range w.figures {
				if n := t.Note(s, f.Name); n != "" {
					fmt.Fprintf(b, "%s, %s: %s.\n", f.What, s, n)
				}
			}
		}
	}
}

// everything lists each figure of each side.
func (t *tables) everything(b *strings.Builder) {
	b.WriteString("\n## Everything measured\n\n| figure | Millrace | Apache Kafka | ours / theirs | client's ceiling |\n|---|---|---|---|---|\n")
	for _, w := range t.all {
		for _, f := range w.figures {
			ours, theirs := t.Spread(ourSide, f.Name), t.Spread(kafkaSide, f.Name)
			ratio, mark := "", ""
			if theirs.Median > 0 && ours.Rounds > 0 {
				ratio = fmt.Sprintf("%.3g", ours.Median/theirs.Median)
			}
			if f.Less {
				mark = " ↓"
			}
			limit := t.Cell(clientSide, f)
			if t.Spread(diskSide, f.Name).Rounds > 0 {
				limit = "the disk alone: " + t.Cell(diskSide, f)
			}
			fmt.Fprintf(b, "| %s%s | %s | %s | %s | %s |\n", f.What, mark, t.Cell(ourSide, f), t.Cell(kafkaSide, f), ratio, limit)
		}
	}
}
