package history

import (
	"errors"
	"fmt"
	"math"
)

// ErrMalformed is wrapped by what Check returns for events that are no history: no
// verdict on a broker, but a fault of whoever recorded them.
var ErrMalformed = errors.New("malformed history")

// operation is a start and an end put together.
type operation struct {
	event      int // of the end, or the start if there is no end
	process    int
	kind       Kind
	outcome    Type
	start, end int64 // end is never without an end
	steps      []Step
	committed  bool // what it wrote is in the log for readers; see settle
	subscribed string
}

// never is the end of an operation without one.
const never = math.MaxInt64

// pair makes operations of events, in the order of their ends; those without an end
// come last.
func pair(events []Event) ([]operation, error) {
	ops := make([]operation, 0, len(events)/2+1)
	open := map[int]int{} // process -> event of its start
	group := map[int]string{}
	var last int64
	for i := range events {
		e := &events[i]
		if e.Time < last {
			return nil, fmt.Errorf("%w: event %d is older than the one before", ErrMalformed, i+1)
		}
		last = e.Time
		from, begun := open[e.Process]
		if e.Type == Invoke {
			if begun {
				return nil, fmt.Errorf("%w: event %d starts an operation of process %d, which has one", ErrMalformed, i+1, e.Process)
			}
			open[e.Process] = i
			continue
		}
		o := operation{event: i, process: e.Process, kind: e.Kind, outcome: e.Type, start: e.Time, end: e.Time, steps: e.Steps}
		if begun {
			delete(open, e.Process)
			if events[from].Kind != e.Kind {
				return nil, fmt.Errorf("%w: event %d ends a %v, process %d is in a %v", ErrMalformed, i+1, e.Kind, e.Process, events[from].Kind)
			}
			o.start = events[from].Time
			if len(o.steps) == 0 {
				o.steps = events[from].Steps
			}
		}
		switch {
		case e.Kind == Subscribe:
			group[e.Process] = e.Group
		case e.Kind == Assign:
			delete(group, e.Process)
		}
		o.subscribed = group[e.Process]
		ops = append(ops, o)
	}
	for i := range events {
		if e := &events[i]; e.Type == Invoke {
			if from, begun := open[e.Process]; begun && from == i {
				ops = append(ops, operation{event: i, process: e.Process, kind: e.Kind, outcome: Info, start: e.Time, end: never, steps: e.Steps, subscribed: group[e.Process]})
			}
		}
	}
	return ops, nil
}

// transactional says whether it is one transaction.
func (o *operation) transactional() bool { return o.kind == Txn }
