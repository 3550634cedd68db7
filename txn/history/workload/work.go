package workload

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/txn/history"
)

func newClient(f *field, number int, closings *sync.WaitGroup) *client {
	c := &client{field: f, number: number, flavour: flavourOf(number), closings: closings}
	c.rng = rand.New(rand.NewPCG(f.options.Seed, uint64(number)))
	c.version1 = c.version1 && !f.options.OnlyVersion2
	c.renew()
	return c
}

// How often things happen, as one in so many operations. A group rebalances whenever
// a member comes or goes, and waits for one that crashed until its session is over, so
// that members stay longer than others.
const (
	oneAssignment = 60
	oneMembership = 400
	oneCrash      = 200
	oneDeath      = 2000 // a crash of a dynamic member
	oneAbort      = 12
	oneUsurper    = 150 // commits before which another client takes the place
)

// odds are those of a new assignment and of a crash, as one in so many.
func (c *client) odds() (assignment, crash int) {
	switch {
	case c.group == "":
		return oneAssignment, oneCrash
	case c.static:
		return oneMembership, oneCrash
	}
	return oneMembership, oneDeath
}

// work does operations until stop is closed.
func (c *client) work(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		assignment, crash := c.odds()
		switch {
		case c.cl == nil || c.rng.IntN(assignment) == 0:
			if err := c.reassign(); err != nil {
				return // the options are refused; settle reports it
			}
		case c.rng.IntN(crash) == 0:
			c.crash()
		default:
			c.operate()
		}
	}
}

// operate does one operation of the kinds that this client knows.
func (c *client) operate() {
	if !c.transactional {
		if c.rng.IntN(2) == 0 {
			c.plainPoll()
		} else {
			c.plainSend(c.sendStep())
		}
		return
	}
	if c.group == "" && c.rng.IntN(8) == 0 {
		c.plainPoll()
		return
	}
	steps := make([]history.Step, 1+c.rng.IntN(4))
	for i := range steps {
		steps[i] = history.Step{Kind: history.StepPoll}
		if c.rng.IntN(2) == 0 {
			steps[i] = c.sendStep()
		}
	}
	abortAt := -1
	if c.rng.IntN(oneAbort) == 0 {
		abortAt = c.rng.IntN(len(steps) + 1)
	}
	c.transaction(steps, abortAt)
}

func (c *client) sendStep() history.Step {
	k := c.field.keys[c.rng.IntN(len(c.field.keys))]
	return history.Step{Kind: history.StepSend, Key: k, Value: c.value(k), Offset: history.Unknown}
}

// crash drops the client.
func (c *client) crash() {
	c.rec.add(history.Event{Process: c.process, Type: history.Info, Kind: history.Crash})
	c.drop()
	c.renew()
}

// reassign changes what the client reads: some partitions of its own choice, or a
// share of a group's.
func (c *client) reassign() error {
	c.close()
	if c.rng.IntN(2) == 0 {
		return c.subscribe(c.groups[c.rng.IntN(groups)])
	}
	keys := slices.Clone(c.field.keys)
	c.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	keys = keys[:1+c.rng.IntN(len(keys))]
	slices.SortFunc(keys, compareKeys)
	return c.assign(keys, c.group != "" || c.rng.IntN(4) == 0)
}

func (c *client) subscribe(group string) error {
	c.group, c.keys, c.next = group, c.field.keys, map[history.Key]int64{}
	return c.start(history.Event{Kind: history.Subscribe, Group: group, Keys: c.keys})
}

// assign goes on where the process was with partitions that it had already, and else
// from the start.
func (c *client) assign(keys []history.Key, fromStart bool) error {
	next := map[history.Key]int64{}
	for _, k := range keys {
		if !fromStart {
			next[k] = c.next[k]
		}
	}
	c.group, c.keys, c.next = "", keys, next
	return c.start(history.Event{Kind: history.Assign, Keys: keys, FromStart: fromStart})
}

func (c *client) start(e history.Event) error {
	e.Process, e.Type = c.process, history.Invoke
	c.rec.add(e)
	err := c.open()
	if e.Type = history.OK; err != nil {
		e.Type, e.Note = history.Fail, err.Error()
	}
	c.rec.add(e)
	return err
}

// settle shows that the client can work, whatever happened before: one more
// transaction or send on its own assignment, which also ends what an earlier process
// left open. It gives up at the deadline.
func (c *client) settle(deadline time.Time) error {
	last := errNoClient
	for time.Now().Before(deadline) {
		if c.cl == nil {
			if err := c.assign(c.field.keys[:1], true); err != nil {
				return err
			}
		}
		before := c.process
		if !c.transactional {
			c.plainSend(c.sendStep())
			if c.process == before {
				return nil
			}
		} else if c.transaction([]history.Step{c.sendStep()}, -1) {
			return nil
		}
		last = errNotSettled
		time.Sleep(20 * time.Millisecond) // between two tries of something that failed
	}
	return last
}

var errNotSettled = errors.New("none of its operations succeeded")
