package history_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/txn/history"
	"github.com/millrace/millrace/txn/history/historytest"
)

// model is a log of the simplest kind, and clients that work on it one step at a time,
// as a seed says. Whatever they do and see keeps all promises.
type model struct {
	rng    *rand.Rand
	keys   []history.Key
	logs   map[history.Key][]entry
	values map[history.Key]int64
	group  map[history.Key]int64 // committed offsets
	owner  map[history.Key]*worker
	events []history.Event
	time   int64
}

// entry is a record or, with a value of -1, a marker.
type entry struct {
	value int64
	fate  **bool // of its transaction: *fate is nil while it is open, **fate says whether it committed
}

type worker struct {
	process int
	next    map[history.Key]int64 // of its assignment
	member  bool
	running []history.Step // steps that are left
	done    history.Event
	fate    **bool
	read    map[history.Key]int64
}

const groupName = "g"

func newModel(seed uint64) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 1)), logs: map[history.Key][]entry{}, values: map[history.Key]int64{},
		group: map[history.Key]int64{}, owner: map[history.Key]*worker{}}
	for i := range 3 {
		m.keys = append(m.keys, history.Key{Topic: "t", Partition: int32(i)})
	}
	return m
}

func (m *model) emit(e history.Event) {
	m.time += 1 + m.rng.Int64N(20)
	e.Time = m.time
	m.events = append(m.events, e)
}

// stable is the last stable offset.
func (m *model) stable(k history.Key) int64 {
	for i, e := range m.logs[k] {
		if e.fate != nil && *e.fate == nil {
			return int64(i)
		}
	}
	return int64(len(m.logs[k]))
}

// poll reads up to most committed records from an offset on, and says where it ended.
func (m *model) poll(k history.Key, from int64, most int) (reads []history.Read, next int64) {
	for next = from; next < m.stable(k) && len(reads) < most; next++ {
		if e := m.logs[k][next]; e.value >= 0 && **e.fate {
			reads = append(reads, history.Read{Key: k, Value: e.value, Offset: next})
		}
	}
	return reads, next
}

// start begins an operation.
func (m *model) start(w *worker) {
	steps := make([]history.Step, 1+m.rng.IntN(4))
	for i := range steps {
		steps[i].Kind = history.StepPoll
		if m.rng.IntN(2) == 0 {
			k := m.keys[m.rng.IntN(len(m.keys))]
			m.values[k]++
			steps[i] = history.Step{Kind: history.StepSend, Key: k, Value: m.values[k], Offset: history.Unknown}
		}
	}
	m.emit(history.Event{Process: w.process, Kind: history.Txn, Type: history.Invoke, Steps: slices.Clone(steps)})
	w.running, w.done = steps, history.Event{Process: w.process, Kind: history.Txn}
	var open *bool
	w.fate, w.read = &open, map[history.Key]int64{}
}

// step does the next step of a worker, or ends its operation.
func (m *model) step(w *worker) {
	if w.fate == nil {
		m.start(w)
		return
	}
	if len(w.running) == 0 {
		m.end(w)
		return
	}
	s := w.running[0]
	w.running = w.running[1:]
	m.time += 1 + m.rng.Int64N(20)
	s.At = m.time
	if s.Kind == history.StepSend {
		s.Offset = int64(len(m.logs[s.Key]))
		m.logs[s.Key] = append(m.logs[s.Key], entry{value: s.Value, fate: w.fate})
	} else {
		for _, k := range m.keys {
			from, known := w.read[k]
			if !known {
				from = w.next[k]
			}
			if w.member {
				if m.owner[k] != nil && m.owner[k] != w {
					continue
				}
				if m.owner[k] == nil {
					from = m.group[k]
				}
				m.owner[k] = w // until its transaction ends
			}
			reads, next := m.poll(k, from, 1+m.rng.IntN(6))
			s.Reads = append(s.Reads, reads...)
			w.read[k] = next
		}
	}
	w.done.Steps = append(w.done.Steps, s)
}

func (m *model) end(w *worker) {
	commit := m.rng.IntN(6) > 0
	if commit && w.member {
		s := history.Step{Kind: history.StepOffsets, Group: groupName}
		for _, k := range m.keys {
			if at, polled := w.read[k]; polled && m.owner[k] == w {
				s.Next = append(s.Next, history.Position{Key: k, Offset: at})
			}
		}
		w.done.Steps = append(w.done.Steps, s)
	}
	m.time++
	kind := history.StepAbort
	if commit {
		kind = history.StepCommit
	}
	w.done.Steps = append(w.done.Steps, history.Step{Kind: kind, At: m.time})
	*w.fate = &commit
	for _, k := range m.keys {
		if slices.ContainsFunc(w.done.Steps, func(s history.Step) bool { return s.Kind == history.StepSend && s.Key == k }) {
			m.logs[k] = append(m.logs[k], entry{value: -1})
		}
		if m.owner[k] == w {
			delete(m.owner, k)
			if commit {
				m.group[k] = w.read[k]
			}
		}
	}
	unknown := m.rng.IntN(10) == 0
	switch {
	case unknown:
		w.done.Type = history.Info
		for i := range w.done.Steps {
			if s := &w.done.Steps[i]; s.Kind == history.StepSend && m.rng.IntN(2) == 0 {
				s.Offset = history.Unknown
			}
		}
	case commit:
		w.done.Type = history.OK
		for k, at := range w.read {
			w.next[k] = at
		}
	default:
		w.done.Type = history.Fail
	}
	m.emit(w.done)
	w.fate = nil
}

// look observes the watermarks and the offsets.
func (m *model) look() {
	marks, offsets := history.Event{Process: 99, Kind: history.Marks, Type: history.OK}, history.Event{Process: 99, Kind: history.Committed, Type: history.OK, Group: groupName}
	for _, k := range m.keys {
		marks.Marks = append(marks.Marks, history.Mark{Key: k, Stable: m.stable(k), High: int64(len(m.logs[k]))})
		if at, committed := m.group[k]; committed {
			offsets.Positions = append(offsets.Positions, history.Position{Key: k, Offset: at})
		}
	}
	m.emit(marks)
	m.emit(offsets)
}

// run works for some steps, then drains.
func (m *model) run(steps int) []history.Event {
	workers := make([]*worker, 5)
	for i := range workers {
		workers[i] = &worker{process: i, next: map[history.Key]int64{}, member: i%2 == 0}
		e := history.Event{Process: i, Kind: history.Assign, Type: history.OK, Keys: m.keys, FromStart: true}
		if workers[i].member {
			e.Kind, e.Group, e.FromStart = history.Subscribe, groupName, false
		}
		m.emit(e)
	}
	for i := range steps {
		m.step(workers[m.rng.IntN(len(workers))])
		if i%20 == 0 {
			m.look()
		}
	}
	for _, w := range workers {
		for w.fate != nil {
			m.step(w)
		}
	}
	for reader := 50; reader < 52; reader++ {
		at := map[history.Key]int64{}
		for more := true; more; {
			more = false
			s := history.Step{Kind: history.StepPoll}
			for _, k := range m.keys {
				var reads []history.Read
				if reads, at[k] = m.poll(k, at[k], 50); len(reads) > 0 {
					more = true
				}
				s.Reads = append(s.Reads, reads...)
			}
			m.emit(history.Event{Process: reader, Kind: history.Poll, Type: history.OK, Steps: []history.Step{s}})
		}
	}
	m.emit(history.Event{Process: 98, Kind: history.Drain, Type: history.OK})
	m.look()
	return m.events
}

func judge(t *testing.T, events []history.Event) (*history.Report, string) {
	t.Helper()
	r, err := history.Check(events)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return r, b.String()
}

// TestModel: histories of a log that keeps its promises have no anomaly, and each way
// to spoil them is found.
func TestModel(t *testing.T) {
	t.Parallel()
	rounds := 10
	if os.Getenv("MILLRACE_SOAK") != "" {
		rounds = 1000
	}
	from := seedtest.New(t)
	tampered := map[string]int{}
	for seed := from; seed < from+uint64(rounds); seed++ {
		events := newModel(seed).run(400)
		r, text := judge(t, events)
		if !r.Valid() {
			t.Fatalf("seed %d: %s", seed, text)
		}
		if r.Stats.Committed == 0 || r.Stats.Aborted == 0 || r.Stats.Undecided == 0 {
			t.Fatalf("seed %d: the model does too little:\n%s", seed, text)
		}
		for _, tamper := range historytest.Tamperings() {
			spoilt := historytest.Clone(events)
			if !tamper.Apply(rand.New(rand.NewPCG(seed, 2)), spoilt) {
				continue
			}
			tampered[tamper.Name]++
			r, text := judge(t, spoilt)
			if !slices.ContainsFunc(tamper.Shows, func(c history.Class) bool { return r.Counts[c] > 0 }) {
				t.Errorf("seed %d: %s: none of %v is found:\n%s", seed, tamper.Name, tamper.Shows, text)
			}
		}
	}
	for _, tamper := range historytest.Tamperings() {
		if tampered[tamper.Name] == 0 {
			t.Errorf("%s: never had an occasion", tamper.Name)
		}
	}
}

func ExampleCheck() {
	events, err := history.Parse(strings.NewReader(`
		p0 ok txn send orders/0 1@0 | send stock/0 1@0 | commit
		p1 fail txn send orders/0 2@2 | abort
		p2 ok poll poll orders/0 1@0 2@2
	`))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := history.Check(events)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range r.Anomalies {
		if !a.Class.Allowed() {
			fmt.Printf("%s in %v: %s\n", a.Class, a.Key, a.Text)
		}
	}
	// Output: aborted-read in orders/0: value 2 at offset 2
}
