package runtime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace/streams/state"
)

// Ask is a question about the rows of a store in one unit. Answers are of the
// committed level: what a transaction that is open has written is not in them, so
// what an abort takes back was never seen.
type Ask struct {
	Store string `json:"store"`
	Unit  int32  `json:"unit"`
	// Key asks for one row. Without it From and To ask for those with From <= key
	// < To, at most Limit of them; nil is the first and after the last.
	Key   []byte `json:"key,omitempty"`
	From  []byte `json:"from,omitempty"`
	To    []byte `json:"to,omitempty"`
	Limit int    `json:"limit,omitempty"`
	// Stale allows a copy to answer that lacks no more than so many records; -1
	// allows none.
	Stale int64 `json:"stale"`
	// Seen are offsets of the task's input whose records must be in the answer, by
	// topic. A copy cannot tell, so it is not asked.
	Seen map[string]int64 `json:"seen,omitempty"`
}

// Row is a row as a store has it.
type Row struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// Answer is what was found.
type Answer struct {
	Rows []Row `json:"rows,omitempty"`
	// More says that there are more rows; they follow the last one.
	More bool `json:"more,omitempty"`
	// StreamMs is the task's stream time, -1 when it is not known.
	StreamMs int64 `json:"streamMs"`
	// Copy says that a copy has answered, which lacks Lag records.
	Copy bool  `json:"copy,omitempty"`
	Lag  int64 `json:"lag,omitempty"`
}

var (
	// ErrNotHere reports that this process neither runs the task nor has a copy
	// that may answer.
	ErrNotHere = errors.New("streams: the store is not in this process")
	// ErrNoStore reports a name that no store has.
	ErrNoStore = errors.New("streams: no such store")
)

// maxLimit bounds how many rows are read for one answer: meanwhile the tasks wait.
const maxLimit = 1000

// answerBytes is how large an answer with several rows gets.
const answerBytes = 1 << 20

// question is an Ask on its way.
type question struct {
	Ask
	id    taskID
	ctx   context.Context
	reply chan reply // capacity 1
}

type reply struct {
	Answer
	err error
}

func (q *question) answer(a Answer, err error) { q.reply <- reply{a, err} }

// read collects the rows that are asked for.
func (q *question) read(get func([]byte) ([]byte, bool, error), scan func(from, to []byte) iter.Seq2[state.Row, error]) (Answer, error) {
	var a Answer
	if q.Key != nil {
		v, ok, err := get(q.Key)
		if ok {
			a.Rows = append(a.Rows, Row{append([]byte{}, q.Key...), append([]byte{}, v...)})
		}
		return a, err
	}
	limit, size := q.Limit, 0
	if limit <= 0 || limit > maxLimit {
		limit = maxLimit
	}
	for row, err := range scan(q.From, q.To) {
		if err != nil {
			return a, err
		}
		if len(a.Rows) == limit || size > answerBytes {
			a.More = true
			break
		}
		a.Rows = append(a.Rows, Row{append([]byte{}, row.Key...), append([]byte{}, row.Value...)})
		size += len(row.Key) + len(row.Value)
	}
	return a, nil
}

// inquire answers the questions that have arrived, and those that waited for a commit.
func (w *worker) inquire(q *question) {
	if q != nil {
		w.waiting = append(w.waiting, q)
	}
	rest := w.waiting[:0]
	for _, q := range w.waiting {
		if q.ctx.Err() == nil && !w.answer(q) {
			rest = append(rest, q)
		}
	}
	clear(w.waiting[len(rest):])
	w.waiting = rest
}

// answer answers a question, unless it has to wait until more is committed.
func (w *worker) answer(q *question) (done bool) {
	for _, g := range w.globals {
		if g.spec.Name == q.Store {
			a, err := q.read(g.rows.Get, g.rows.Range)
			a.StreamMs = -1
			q.answer(a, err)
			return true
		}
	}
	for _, a := range w.tasks {
		if a.id != q.id {
			continue
		}
		for topic, offset := range q.Seen {
			if at, reads := a.committedAt(topic); reads && at <= offset {
				return false
			}
		}
		for _, s := range a.stores {
			if s.spec.Name == q.Store {
				c := s.overlay.Committed()
				found, err := q.read(c.Get, c.Range)
				found.StreamMs = a.task.StreamTimeMs()
				q.answer(found, err)
				return true
			}
		}
	}
	q.answer(Answer{}, ErrNotHere)
	return true
}

// committedAt is up to where a task has committed a topic.
func (a *active) committedAt(topic string) (at int64, reads bool) {
	for _, in := range a.inputs {
		if in.topic.Topic == topic {
			return in.committed, true
		}
	}
	return 0, false
}

// answer answers from a copy.
func (k *keeper) answer(q *question) {
	x := k.kept[q.id]
	if x == nil || x.busy || x.takeover == nil || x.since > 0 {
		q.answer(Answer{}, ErrNotHere)
		return
	}
	for _, o := range x.takeover.opened {
		if o.spec.Name != q.Store || o.job == nil || o.job.Err() != nil {
			continue
		}
		lag := o.job.Remaining()
		if lag > q.Stale {
			q.answer(Answer{}, fmt.Errorf("%w: its copy lacks %d records", ErrNotHere, lag))
			return
		}
		c := o.job.Overlay.Committed()
		a, err := q.read(c.Get, c.Range)
		a.Copy, a.Lag, a.StreamMs = true, lag, -1
		q.answer(a, err)
		return
	}
	q.answer(Answer{}, ErrNotHere)
}

// moving is how long a question waits before it looks again for a task that is on
// its way from one process to another.
const moving = 50 * time.Millisecond
