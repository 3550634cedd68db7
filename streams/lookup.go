package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace/millrace/streams/internal/runtime"
)

// Errors of views.
var (
	// ErrNotHere: no process that could be asked has the rows.
	ErrNotHere = runtime.ErrNotHere
	// ErrNoView: the table keeps no rows that could be looked at.
	ErrNoView = errors.New("streams: nothing to look at")
)

// ViewOpt is an option of a view.
type ViewOpt func(*lookup)

// Stale lets a standby copy answer that lacks no more than so many records of the
// changelog. It sees no change of a transaction before that is committed, but may see
// some of its changes before others. Without it only the process that works on the key
// answers; with it there is an answer while that process is down.
func Stale(records int64) ViewOpt { return func(l *lookup) { l.stale = records } }

// Seen makes a view wait until the record at an offset of an input has been processed
// and committed, so that what somebody has just produced is in the answer. The topic
// must be one that the table's own task reads, not one in front of a repartition;
// others, and keys of other partitions, are not waited for.
func Seen(topic string, partition int32, offset int64) ViewOpt {
	return func(l *lookup) { l.seen = append(l.seen, seen{topic, partition, offset}) }
}

// LocalOnly asks no other process: what this one does not have is ErrNotHere.
func LocalOnly() ViewOpt { return func(l *lookup) { l.local = true } }

// AnyPartition looks for a key in all partitions, for tables whose records were
// partitioned otherwise than by murmur2 of their key.
func AnyPartition() ViewOpt { return func(l *lookup) { l.any = true } }

type seen struct {
	topic     string
	partition int32
	offset    int64
}

// lookup is where a view looks, in bytes.
type lookup struct {
	run   *Running
	store string
	stale int64
	seen  []seen
	local bool
	any   bool
	err   error
}

func newLookup(r *Running, a *App, store string, opts []ViewOpt) lookup {
	l := lookup{run: r, store: store, stale: -1}
	for _, o := range opts {
		o(&l)
	}
	if r == nil || r.app != a {
		l.err = fmt.Errorf("%w: table %s is not one of the application that runs", ErrNoView, store)
	}
	return l
}

// ask is the question about a unit.
func (l *lookup) ask(unit int32) runtime.Ask {
	q := runtime.Ask{Store: l.store, Unit: unit, Stale: l.stale}
	for _, s := range l.seen {
		if s.partition != unit {
			continue
		}
		if q.Seen == nil {
			q.Seen = map[string]int64{}
		}
		q.Seen[s.topic] = s.offset
	}
	return q
}

func (l *lookup) query(ctx context.Context, q runtime.Ask) (runtime.Answer, error) {
	if l.local {
		return l.run.job.Local(ctx, q)
	}
	return l.run.job.Query(ctx, q, askOverHTTP)
}

// get looks one row up. key is its key in the store, home the key by which it is
// partitioned. The answer is that of its unit, found or not.
func (l *lookup) get(ctx context.Context, home, key []byte) (row []byte, a runtime.Answer, err error) {
	if l.err != nil {
		return nil, a, l.err
	}
	units, err := l.units(home)
	for _, unit := range units {
		q := l.ask(unit)
		q.Key = key
		if a, err = l.query(ctx, q); err != nil || len(a.Rows) > 0 {
			break
		}
	}
	if err != nil || len(a.Rows) == 0 {
		return nil, a, l.wrap(err)
	}
	return a.Rows[0].Value, a, nil
}

// units are those that may have a key; all without one.
func (l *lookup) units(home []byte) ([]int32, error) {
	if home != nil && !l.any {
		unit, err := l.run.job.UnitOf(l.store, home)
		return []int32{unit}, err
	}
	n, err := l.run.job.Units(l.store)
	var all []int32
	for u := range n {
		all = append(all, u)
	}
	return all, err
}

// scan yields the rows with from <= key < to of the units that may have home, in order
// of the keys' bytes, some at a time: what is committed meanwhile may show.
func (l *lookup) scan(ctx context.Context, home, from, to []byte) iter.Seq2[found, error] {
	return func(yield func(found, error) bool) {
		if l.err != nil {
			yield(found{}, l.err)
			return
		}
		units, err := l.units(home)
		if err != nil {
			yield(found{}, l.wrap(err))
			return
		}
		parts := make([]*unitScan, len(units))
		for i, u := range units {
			parts[i] = &unitScan{ask: l.ask(u), more: true}
			parts[i].ask.From, parts[i].ask.To = from, to
		}
		for {
			var least *unitScan
			for _, p := range parts {
				if err := p.fill(ctx, l); err != nil {
					yield(found{}, l.wrap(err))
					return
				}
				if len(p.rows) > 0 && (least == nil || bytes.Compare(p.rows[0].Key, least.rows[0].Key) < 0) {
					least = p
				}
			}
			if least == nil {
				return
			}
			row := least.rows[0]
			least.rows = least.rows[1:]
			if !yield(found{row, least.streamMs}, nil) {
				return
			}
		}
	}
}

// found is a row with the stream time of its task, -1 when that is not known.
type found struct {
	runtime.Row
	streamMs int64
}

// unitScan is a scan of one unit.
type unitScan struct {
	ask      runtime.Ask
	rows     []runtime.Row
	more     bool
	streamMs int64
}

func (p *unitScan) fill(ctx context.Context, l *lookup) error {
	if len(p.rows) > 0 || !p.more {
		return nil
	}
	a, err := l.query(ctx, p.ask)
	if err != nil {
		return err
	}
	p.rows, p.more, p.streamMs = a.Rows, a.More, a.StreamMs
	if n := len(a.Rows); n > 0 {
		p.ask.From = append(bytes.Clone(a.Rows[n-1].Key), 0)
	}
	return nil
}

func (l *lookup) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("view of %s: %w", l.store, err)
}
