package main

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/benchmarks/figures"
)

// page is what a run writes, from what its rounds found.
type page struct {
	*figures.Collected
	head  string
	state string // how far the run is
	all   []work
	rows  []row
}

func (p *page) String() string {
	var b strings.Builder
	b.WriteString(p.head)
	fmt.Fprintf(&b, "\nState of the run: %s.\n", p.state)
	if len(p.rows) > 0 {
		p.goals(&b)
	}
	p.everything(&b)
	return b.String()
}

// goals is the table of what is asked for.
func (p *page) goals(b *strings.Builder) {
	b.WriteString("\n## What is asked for\n\nMedians, in brackets the lowest and the highest round. ↓: less is better.\n\n" +
		"| work | of | measured | against | measured | ratio | at least | reach for | reached |\n|---|---|---|---|---|---|---|---|---|\n")
	reached, judged := 0, 0
	for _, r := range p.rows {
		f, _ := figureNamed(p.all, r.figure)
		other, _ := figureNamed(p.all, r.other())
		v := r.judge(p.Collected)
		if r.judged() {
			judged++
			if strings.HasPrefix(v.said, "yes") {
				reached++
			}
		}
		atLeast, reach := r.goals(f.Unit)
		fmt.Fprintf(b, "| %s%s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.what, arrow(f), r.side, p.Cell(r.side, f), r.than, p.Cell(r.than, other),
			v.ratio, atLeast, reach, v.said)
	}
	fmt.Fprintf(b, "\n%d of %d rows reached.\n", reached, judged)
}

// everything lists each figure of each side.
func (p *page) everything(b *strings.Builder) {
	b.WriteString("\n## Everything measured\n\n| figure |")
	for _, s := range sides {
		fmt.Fprintf(b, " %s |", s)
	}
	b.WriteString("\n|---|---|---|---|---|\n")
	for _, w := range p.all {
		for _, f := range w.figures {
			fmt.Fprintf(b, "| %s%s |", f.What, arrow(f))
			for _, s := range sides {
				fmt.Fprintf(b, " %s |", p.Cell(s, f))
			}
			b.WriteString("\n")
		}
	}
	for _, s := range sides {
		for _, w := range p.all {
			for _, f := range w.figures {
				if n := p.Note(s, f.Name); n != "" {
					fmt.Fprintf(b, "\n%s, %s: %s.\n", f.What, s, n)
				}
			}
		}
	}
}

func arrow(f figures.Figure) string {
	if f.Less {
		return " ↓"
	}
	return ""
}
