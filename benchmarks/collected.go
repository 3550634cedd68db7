package main

import (
	"fmt"
	"strings"
)

// side is who gave a figure.
type side int

const (
	ourSide side = iota
	kafkaSide
	clientSide // the in-memory broker: what the client allows
	diskSide   // no broker at all
	sides
)

var sideNames = [sides]string{"Millrace", "Apache Kafka", "client's ceiling", "disk"}

// collected is what all rounds have found.
type collected struct {
	values   [sides]map[string][]float64
	failures [sides]map[string]string // the last failure of a figure
	notes    [sides]map[string]string
}

func newCollected() *collected {
	c := &collected{}
	for s := range sides {
		c.values[s], c.failures[s], c.notes[s] = map[string][]float64{}, map[string]string{}, map[string]string{}
	}
	return c
}

// add takes what one run of a workload gave. What it should have given and did not is a failure of that figure.
func (c *collected) add(s side, w workload, found *sheet, err error) {
	for _, f := range w.figures {
		v, ok := found.values[f.name]
		switch {
		case ok:
			c.values[s][f.name] = append(c.values[s][f.name], v)
		case err != nil:
			c.failures[s][f.name] = brief(err)
		}
	}
	for name, note := range found.notes {
		c.notes[s][name] = note
	}
}

// brief is an error on one line that fits a table.
func brief(err error) string {
	s := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "|", "/")), " ")
	if r := []rune(s); len(r) > 120 {
		return string(r[:120]) + "…"
	}
	return s
}

func (c *collected) spread(s side, name string) spread { return spreadOf(c.values[s][name]) }

// cell is a figure of a side with its spread, and what kept it from having more.
func (c *collected) cell(s side, f figure) string {
	v := c.spread(s, f.name)
	failed := c.failures[s][f.name]
	switch {
	case v.rounds == 0 && failed == "":
		return "–"
	case v.rounds == 0:
		return "failed: " + failed
	case failed != "":
		return fmt.Sprintf("%s; of %d rounds, one failed: %s", v.in(f.unit), v.rounds+1, failed)
	}
	return v.in(f.unit)
}
