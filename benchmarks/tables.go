package main

import (
	"fmt"
	"strings"
)

// tables are the pages that a run writes, from what its rounds found. They have one owner, the loop over the rounds.
type tables struct {
	*collected
	all   []workload
	rows  []row
	head  string
	state string // how far the run is
}

func newTables(all []workload, rows []row) *tables {
	return &tables{collected: newCollected(), all: all, rows: rows}
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
		v := r.judge(t.collected, f)
		mark, limit, theirs := "", "", t.cell(kafkaSide, f)
		if f.less {
			mark = " ↓"
		}
		if r.own {
			other, _ := named(t.all, r.against)
			theirs = "ours: " + t.cell(ourSide, other)
		}
		if r.client {
			limit = t.cell(clientSide, f)
		}
		if r.disk != "" {
			d, _ := named(t.all, r.disk)
			limit += "; the disk's: " + t.cell(diskSide, d)
		}
		if r.atLeast.asked() {
			asked++
			if strings.HasPrefix(v.said, "yes") {
				reached++
			}
		}
		fmt.Fprintf(b, "| %s%s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.what, mark, r.sync, t.cell(ourSide, f), theirs, v.ratio, r.atLeast, r.reach, v.said, limit)
	}
	fmt.Fprintf(b, "\n%d of %d rows reached.\n", reached, asked)
	for s, name := range sideNames {
		for _, w := range t.all {
			for _, f := range w.figures {
				if n := t.notes[s][f.name]; n != "" {
					fmt.Fprintf(b, "%s, %s: %s.\n", f.what, name, n)
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
			ours, theirs := t.spread(ourSide, f.name), t.spread(kafkaSide, f.name)
			ratio, mark := "", ""
			if theirs.median > 0 && ours.rounds > 0 {
				ratio = fmt.Sprintf("%.3g", ours.median/theirs.median)
			}
			if f.less {
				mark = " ↓"
			}
			limit := t.cell(clientSide, f)
			if t.spread(diskSide, f.name).rounds > 0 {
				limit = "the disk alone: " + t.cell(diskSide, f)
			}
			fmt.Fprintf(b, "| %s%s | %s | %s | %s | %s |\n", f.what, mark, t.cell(ourSide, f), t.cell(kafkaSide, f), ratio, limit)
		}
	}
}
