package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Anomaly is one finding.
type Anomaly struct {
	Class Class
	Key   Key    // the partition; the zero Key where it concerns none or many
	Text  string // what was found, with values and offsets
	// Events are the operations involved, as indexes into the history: the end
	// of each, or its start where it has none.
	Events []int
}

// Stats counts what a history holds.
type Stats struct {
	Operations int
	Processes  int
	Partitions int
	Committed  int // transactions, certainly
	Aborted    int // transactions, certainly
	Undecided  int // transactions of which the client does not know
	Appeared   int // those of them that turned out to be committed
	Sent       int // records that were sent
	Records    int // records that are in the log for readers
	Reads      int // records returned by polls
	// WorstLag is the longest time in nanoseconds from a writer's
	// acknowledgement to the end of the first operation that read the record.
	WorstLag int64
}

// Report is the verdict on a history.
type Report struct {
	Stats  Stats
	Counts map[Class]int
	// Anomalies are the first findings of each class, at most
	// MaxPerClass, in the order of Classes.
	Anomalies []Anomaly
	events    []Event
}

// MaxPerClass is how many findings of a class are kept; all are counted.
const MaxPerClass = 20

// Valid says that nothing was found that the protocol forbids.
func (r *Report) Valid() bool {
	for c := range r.Counts {
		if !c.Allowed() {
			return false
		}
	}
	return true
}

// Errors lists the classes that were found and are forbidden, in the order of Classes.
func (r *Report) Errors() []Class {
	var out []Class
	for c := range r.Counts {
		if !c.Allowed() {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Class) int { return cmp.Compare(a.rank(), b.rank()) })
	return out
}

func (r *Report) add(a Anomaly) {
	r.Counts[a.Class]++
	if r.Counts[a.Class] <= MaxPerClass {
		r.Anomalies = append(r.Anomalies, a)
	}
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Anomalies, func(a, b Anomaly) int { return cmp.Compare(a.Class.rank(), b.Class.rank()) })
}

// WriteText writes the report for people: the verdict, the findings with their
// operations, then what is allowed, in numbers.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	s := &r.Stats
	verdict := "No anomaly"
	if !r.Valid() {
		verdict = "ANOMALIES"
	}
	fmt.Fprintf(&b, "%s in %d operations of %d processes on %d partitions.\n", verdict, s.Operations, s.Processes, s.Partitions)
	fmt.Fprintf(&b, "Transactions: %d committed, %d aborted, %d undecided (%d of them seen committed).\n", s.Committed, s.Aborted, s.Undecided, s.Appeared)
	fmt.Fprintf(&b, "Records: %d sent, %d in the log, %d read; the slowest was read %v after its acknowledgement.\n",
		s.Sent, s.Records, s.Reads, time.Duration(s.WorstLag).Round(time.Millisecond))
	for _, c := range r.Errors() {
		fmt.Fprintf(&b, "\n%s (%d): %s\n", c, r.Counts[c], c.Meaning())
		r.writeFindings(&b, c, 5)
	}
	first := true
	for i := range classes {
		c := classes[i].class
		if n := r.Counts[c]; n > 0 && c.Allowed() {
			if first {
				b.WriteString("\nAllowed by the protocol:\n")
				first = false
			}
			fmt.Fprintf(&b, "  %-18s %7d  %s\n", c, n, c.Meaning())
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxLine is how much of an operation's line a report shows, in bytes.
const maxLine = 400

func (r *Report) writeFindings(b *strings.Builder, c Class, most int) {
	shown := 0
	for _, a := range r.Anomalies {
		if a.Class != c {
			continue
		}
		if shown++; shown > most {
			break
		}
		b.WriteString("  - ")
		if a.Key != (Key{}) {
			b.WriteString(a.Key.String() + ": ")
		}
		b.WriteString(a.Text + "\n")
		for _, e := range a.Events {
			line := string(r.events[e].AppendText(nil))
			if len(line) > maxLine {
				line = line[:maxLine] + "…"
			}
			fmt.Fprintf(b, "      line %d: %s\n", e+1, line)
		}
	}
	if n := r.Counts[c]; n > most {
		fmt.Fprintf(b, "  … and %d more\n", n-most)
	}
}
