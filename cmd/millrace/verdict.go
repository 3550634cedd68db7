package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/millrace/millrace/txn/history"
	"github.com/millrace/millrace/txn/history/workload"
)

// errAnomalies ends verify where it found some; the report has said all.
var errAnomalies = errors.New("anomalies found")

// verdict adds up what the rounds of verify show.
type verdict struct {
	Valid        bool                  `json:"valid"`
	Seed         uint64                `json:"seed"`
	Rounds       int                   `json:"rounds"`
	Operations   int                   `json:"operations"`
	Transactions int                   `json:"transactions"` // committed
	Records      int                   `json:"records"`
	Anomalies    map[history.Class]int `json:"anomalies"`
	Allowed      map[history.Class]int `json:"allowed"`

	rounds int // that there are to be
}

// judge checks one round. As text a single round is reported in full, and of several
// those that are not in order.
func (v *verdict) judge(p printer, seed uint64, events []history.Event) error {
	r, err := history.Check(events)
	if err != nil {
		return err
	}
	if v.Rounds == 0 {
		v.Anomalies, v.Allowed = map[history.Class]int{}, map[history.Class]int{}
	}
	v.Rounds++
	v.Operations += r.Stats.Operations
	v.Transactions += r.Stats.Committed + r.Stats.Appeared
	v.Records += r.Stats.Records
	for c, n := range r.Counts {
		if c.Allowed() {
			v.Allowed[c] += n
		} else {
			v.Anomalies[c] += n
		}
	}
	switch {
	case p.json:
		return nil
	case v.rounds == 1 || !r.Valid():
		if _, err := fmt.Fprintf(p.w, "Seed %d.\n", seed); err != nil {
			return err
		}
		return r.WriteText(p.w)
	}
	_, err = fmt.Fprintf(p.w, "round %d of %d, seed %d: no anomaly, %d operations, %d transactions, %d records\n",
		v.Rounds, v.rounds, seed, r.Stats.Operations, r.Stats.Committed+r.Stats.Appeared, r.Stats.Records)
	return err
}

// end prints the sum, and is an error where something is wrong.
func (v *verdict) end(p printer) error {
	v.Valid = len(v.Anomalies) == 0
	if p.json {
		if err := p.print(v, ""); err != nil {
			return err
		}
	} else if v.Rounds > 1 && v.Valid {
		if err := p.print(v, "No anomaly in %d rounds, %d operations, %d transactions, %d records.", v.Rounds, v.Operations, v.Transactions, v.Records); err != nil {
			return err
		}
	}
	if !v.Valid {
		return fmt.Errorf("%w (seed %d)", errAnomalies, v.Seed)
	}
	return nil
}

// roundMark starts the line before each round in a file of histories.
const roundMark = "# round "

// historyFile is where histories are kept; without a name nowhere.
type historyFile struct {
	file *os.File
	out  *bufio.Writer
}

func newHistoryFile(name string) (*historyFile, error) {
	if name == "" {
		return &historyFile{}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &historyFile{f, bufio.NewWriter(f)}, nil
}

func (h *historyFile) write(n int, seed uint64, events []history.Event) error {
	if h.file == nil {
		return nil
	}
	if _, err := fmt.Fprintf(h.out, "%s%d seed %d\n", roundMark, n+1, seed); err != nil {
		return err
	}
	var line []byte
	for i := range events {
		line = append(events[i].AppendText(line[:0]), '\n')
		if _, err := h.out.Write(line); err != nil {
			return err
		}
	}
	return h.out.Flush()
}

func (h *historyFile) close() error {
	if h.file == nil {
		return nil
	}
	return h.file.Close()
}

// keptRound is a round as it was kept.
type keptRound struct {
	seed   uint64
	events []history.Event
}

// readRounds reads what historyFile wrote, or a plain history.
func readRounds(r io.Reader) ([]keptRound, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var kept []keptRound
	for from := 0; from < len(raw); {
		to := len(raw)
		if i := bytes.Index(raw[from+1:], []byte("\n"+roundMark)); i >= 0 {
			to = from + i + 2
		}
		var k keptRound
		var n int
		if _, err := fmt.Sscanf(string(raw[from:to]), roundMark+"%d seed %d", &n, &k.seed); err != nil {
			k.seed = 0 // a plain history
		}
		// Empty lines in place of the rounds before, for the numbers in errors.
		before := bytes.Repeat([]byte("\n"), bytes.Count(raw[:from], []byte("\n")))
		if k.events, err = history.Parse(io.MultiReader(bytes.NewReader(before), bytes.NewReader(raw[from:to]))); err != nil {
			return nil, err
		}
		if from = to; len(k.events) > 0 {
			kept = append(kept, k)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("%w: it holds no event", history.ErrText)
	}
	return kept, nil
}

// timeBar shows a person how far a round is.
type timeBar struct {
	bar   *progressbar.ProgressBar // nil: nobody looks
	label string
	whole time.Duration
}

func newTimeBar(label string, whole time.Duration) *timeBar {
	b := &timeBar{label: label, whole: whole}
	if isTerminal(os.Stderr) {
		b.bar = progressbar.NewOptions64(whole.Milliseconds(), progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
	}
	return b
}

func (b *timeBar) show(p workload.Progress) {
	if b.bar == nil {
		return
	}
	parts := []string{b.label, string(p.Phase), fmt.Sprintf("%d operations, %d failed, %d of them unknown", p.Done, p.Failed, p.Unknown)}
	b.bar.Describe(strings.Join(parts, ": "))
	_ = b.bar.Set64(min(p.Elapsed, b.whole).Milliseconds()) // a bar that can not be drawn is not worth an error
}

func (b *timeBar) done() {
	if b.bar != nil {
		_ = b.bar.Finish() // as show
	}
}
