package sim

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// tailLines is how many lines a failure shows: enough to see what led to it, few enough to read.
const tailLines = 60

// trace is what happened, one line for each thing that matters. The last lines are always kept, unformatted until somebody
// wants them; a writer gets all of them as they come.
type trace struct {
	out  io.Writer // nil keeps the tail only
	ring [tailLines]line
	next int
	err  error // of the writer
}

// line is a line before it is formatted. Its arguments are plain values, so that they say the same later.
type line struct {
	at     time.Duration
	step   int
	format string
	args   []any
}

func (l line) String() string {
	return fmt.Sprintf("%12v %6d  ", l.at, l.step) + fmt.Sprintf(l.format, l.args...)
}

func (t *trace) add(l line) {
	t.ring[t.next%tailLines] = l
	t.next++
	if t.out != nil && t.err == nil {
		_, t.err = io.WriteString(t.out, l.String()+"\n")
	}
}

// tail is the last lines, oldest first.
func (t *trace) tail() string {
	var b strings.Builder
	for i := max(0, t.next-tailLines); i < t.next; i++ {
		b.WriteString(t.ring[i%tailLines].String())
		b.WriteByte('\n')
	}
	return b.String()
}
