package figures

import (
	"fmt"
	"os"
	"strings"
)

// Side is who gave a figure, by the name that pages show.
type Side string

// Sheet is what one run of one piece of work has found. It belongs to that run until it ends.
type Sheet struct {
	Values map[string]float64
	Notes  map[string]string // by figure: what has to be said about it
}

// NewSheet is an empty sheet.
func NewSheet() *Sheet { return &Sheet{Values: map[string]float64{}, Notes: map[string]string{}} }

// Collected is what all rounds have found. It has one owner, the loop over the rounds.
type Collected struct {
	values   map[Side]map[string][]float64
	failures map[Side]map[string]string // the last failure of a figure
	notes    map[Side]map[string]string
}

// NewCollected has found nothing yet.
func NewCollected() *Collected {
	return &Collected{map[Side]map[string][]float64{}, map[Side]map[string]string{}, map[Side]map[string]string{}}
}

// Add takes what one run gave that should have given these figures. What it did not give is a failure of that figure.
func (c *Collected) Add(s Side, should []Figure, found *Sheet, err error) {
	if c.values[s] == nil {
		c.values[s], c.failures[s], c.notes[s] = map[string][]float64{}, map[string]string{}, map[string]string{}
	}
	for _, f := range should {
		v, ok := found.Values[f.Name]
		switch {
		case ok:
			c.values[s][f.Name] = append(c.values[s][f.Name], v)
		case err != nil:
			c.failures[s][f.Name] = Brief(err)
		}
	}
	for name, note := range found.Notes {
		c.notes[s][name] = note
	}
}

// Brief is an error on one line that fits a table.
func Brief(err error) string {
	s := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "|", "/")), " ")
	if r := []rune(s); len(r) > 120 {
		return string(r[:120]) + "…"
	}
	return s
}

// Spread is a figure of a side over its rounds; of none, the zero value.
func (c *Collected) Spread(s Side, name string) Spread { return SpreadOf(c.values[s][name]) }

// Note is what has to be said about a figure of a side, or nothing.
func (c *Collected) Note(s Side, name string) string { return c.notes[s][name] }

// Cell is a figure of a side with its spread, and what kept it from having more.
func (c *Collected) Cell(s Side, f Figure) string {
	v := c.Spread(s, f.Name)
	failed := c.failures[s][f.Name]
	switch {
	case v.Rounds == 0 && failed == "":
		return "–"
	case v.Rounds == 0:
		return "failed: " + failed
	case failed != "":
		return fmt.Sprintf("%s; of %d rounds, one failed: %s", v.In(f.Unit), v.Rounds+1, failed)
	}
	return v.In(f.Unit)
}

// ReplaceFile writes a page in one step.
func ReplaceFile(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
