package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
)

// part is one assigned partition.
type part struct {
	tp       connectors.TP
	open     bool // the store has confirmed our fence and we read
	fenced   bool // let go after ErrFenced; waits for the group to take it away or give it anew
	checked  bool // the topic id was confirmed after the reader had settled on a topic
	topicID  connectors.TopicID
	fence    connectors.Fence
	position connectors.Position // as the store holds it
	logEnd   int64               // latest known end for this isolation level, -1 = unknown
}

// task is one goroutine's worth of a sink. Everything in it is owned by the
// goroutine that runs [task.run]; others see it through the board.
type task struct {
	id     int
	o      *SinkOptions
	sink   connectors.TxSink
	spec   connectors.Spec
	claims *claimer
	member *member
	reader *kgo.Client
	box    *mailbox
	board  *board
	log    *slog.Logger

	parts      map[connectors.TP]*part
	pend       pending
	counts     TaskStatus // counters only
	nextOpen   time.Time  // not before: back-off of failed take-overs
	openFails  int
	lastMirror time.Time
	fatal      chan error // from the group client; holds at most one
}

// run is the life of the task. ctx ends when the connector is to stop; work is
// the context of calls, which ends StopTimeout later.
func (t *task) run(ctx, work context.Context) (err error) {
	defer func() { err = t.finish(ctx, work, err) }()
	if err := t.start(ctx, work); err != nil {
		return err
	}
	for {
		t.handleEvents(work)
		select {
		case err := <-t.fatal:
			return err
		default:
		}
		if ctx.Err() != nil {
			return t.lastFlush(ctx, work)
		}
		err := t.round(ctx, work)
		switch {
		case err == nil, errors.Is(err, errStopping):
		case errors.Is(err, errInterrupted):
			t.rewindAll()
		default:
			return err
		}
	}
}

// round opens what waits to be opened, polls once and commits what is due.
func (t *task) round(ctx, work context.Context) error {
	if err := t.openWaiting(ctx, work); err != nil {
		return err
	}
	if err := t.poll(ctx); err != nil {
		return err
	}
	if t.due() {
		if err := t.flush(ctx, work); err != nil {
			return err
		}
	}
	t.mirror(work, false)
	return nil
}

// start makes the clients and the sink.
func (t *task) start(ctx, work context.Context) error {
	t.setState(Starting, nil)
	for attempt := 0; ; attempt++ {
		err := t.call(work, "Prepare", t.sink.Prepare)
		if err == nil {
			break
		}
		if errors.Is(err, connectors.ErrConfig) {
			return err
		}
		t.retrying(err)
		if err := t.backoff(ctx, attempt); err != nil {
			return err
		}
	}
	level := kgo.ReadCommitted()
	if t.o.Isolation == connectors.ReadUncommitted {
		level = kgo.ReadUncommitted()
	}
	reader, err := kgo.NewClient(append(dial(t.o.Cluster, fmt.Sprintf("%s-%d-reader", t.o.Group, t.id)),
		kgo.FetchIsolationLevel(level),
		kgo.KeepControlRecords(), // so that a position passes the marker behind the last record
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxBytes(int32(max(t.o.MaxBytes, 1<<20))),
		kgo.FetchMaxWait(500*time.Millisecond),
	)...)
	if err != nil {
		return fmt.Errorf("%w: reader: %w", connectors.ErrConfig, err)
	}
	t.reader = reader
	t.member, err = join(work, t.o, t.id, t.box, func(err error) {
		select {
		case t.fatal <- err:
			t.box.nudge()
		default: // one is enough
		}
	})
	return err
}

// finish frees everything and turns the reason into the final state.
func (t *task) finish(ctx, work context.Context, err error) error {
	if t.member != nil {
		bye, cancel := context.WithTimeout(work, t.o.StopTimeout)
		defer cancel()
		t.mirror(bye, true)
		left := make(chan struct{})
		go t.box.drain(left) // the farewell revokes; nobody is to wait for us
		t.member.leave(bye)
		close(left)
	}
	if t.reader != nil {
		t.reader.Close()
	}
	if e := t.sink.Close(); e != nil {
		t.log.Warn("closing the sink", "err", e)
	}
	t.parts = nil
	switch {
	case err == nil, errors.Is(err, errStopping) && ctx.Err() != nil, errors.Is(err, errInterrupted) && ctx.Err() != nil:
		t.setState(Stopped, nil)
		return nil
	case isFenced(err):
		t.setState(Fenced, err)
		return fmt.Errorf("task %d: %w: %w", t.id, connectors.ErrFenced, err)
	}
	t.setState(Failed, err)
	return fmt.Errorf("task %d: %w", t.id, err)
}

// handleEvents applies changes of the assignment.
func (t *task) handleEvents(work context.Context) {
	for _, e := range t.box.take() {
		for _, tp := range e.gained {
			t.parts[tp] = &part{tp: tp, position: connectors.NoPosition, logEnd: -1}
			t.nextOpen, t.openFails = time.Time{}, 0
		}
		if len(e.gone) > 0 {
			t.letGo(work, e)
		}
		if len(t.parts) == 0 {
			t.setState(Running, nil) // a member without work
		}
		if e.done != nil {
			close(e.done)
		}
	}
	t.show()
}

// letGo ends the work on partitions that are taken away. What is pending is
// committed first if the group still counts us in; a failure does not matter,
// the next owner starts from the store's position.
func (t *task) letGo(work context.Context, e *event) {
	if !e.lost && !t.pend.empty() {
		if err := t.flushOnce(work); err != nil {
			t.log.Info("pending records left to the next owner", "err", err)
		}
	}
	t.stopReading(e.gone)
	for _, tp := range e.gone {
		delete(t.parts, tp)
	}
	if !t.pend.empty() {
		t.rewindAll()
	}
	if err := t.call(work, "Release", func(ctx context.Context) error { return t.sink.Release(ctx, e.gone) }); err != nil {
		t.log.Warn("release", "err", err)
	}
}

// stopReading removes partitions from the reader, with what it has buffered.
func (t *task) stopReading(tps []connectors.TP) {
	gone := map[string][]int32{}
	for _, tp := range tps {
		gone[tp.Topic] = append(gone[tp.Topic], tp.Partition)
	}
	t.reader.RemoveConsumePartitions(gone)
}

// seek makes the reader go on from the store's positions.
func (t *task) seek(ps []*part) {
	from := map[string]map[int32]kgo.Offset{}
	for _, p := range ps {
		if from[p.tp.Topic] == nil {
			from[p.tp.Topic] = map[int32]kgo.Offset{}
		}
		from[p.tp.Topic][p.tp.Partition] = kgo.NewOffset().At(p.position.Next).WithEpoch(p.position.LeaderEpoch)
	}
	t.reader.AddConsumePartitions(from)
}

// rewindAll drops what is pending and reads it again from the store's
// positions.
func (t *task) rewindAll() {
	var back []*part
	var tps []connectors.TP
	for tp := range t.pend.to {
		if p := t.parts[tp]; p != nil && p.open {
			back, tps = append(back, p), append(tps, tp)
		}
	}
	t.pend.reset()
	t.stopReading(tps)
	t.seek(back)
}

// call runs one call of the sink with its deadline. A panic in a connector
// becomes an error that stops this connector and nothing else.
func (t *task) call(work context.Context, what string, f func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(work, t.o.CallTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s panicked: %v\n%s", connectors.ErrConfig, what, p, debug.Stack())
		}
	}()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// backoff waits before attempt+1; it ends early when the assignment changes or
// the connector stops.
func (t *task) backoff(ctx context.Context, attempt int) error {
	d := t.o.RetryMin << min(attempt, 20)
	if d <= 0 || d > t.o.RetryMax {
		d = t.o.RetryMax
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return errStopping
		case <-t.box.wake:
			if t.box.any() || len(t.fatal) > 0 {
				t.box.nudge()
				return errInterrupted
			}
		}
	}
}

// show puts the task's part of the status on the board.
func (t *task) show() {
	s := t.counts
	for _, tp := range slices.SortedFunc(maps.Keys(t.parts), compareTP) {
		p := t.parts[tp]
		ps := PartitionStatus{TP: tp, State: Starting, Fence: p.fence, Position: p.position, LogEnd: p.logEnd, Lag: -1}
		switch {
		case p.fenced:
			ps.State = Fenced
		case p.open:
			ps.State = Running
		}
		if p.open && p.logEnd >= 0 {
			ps.Lag = max(0, p.logEnd-p.position.Next)
		}
		s.Partitions = append(s.Partitions, ps)
	}
	t.board.update(func(st *Status) {
		s.Task, s.State, s.Err = t.id, st.Tasks[t.id].State, st.Tasks[t.id].Err
		st.Tasks[t.id] = s
	})
}

func (t *task) setState(s State, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	t.board.update(func(st *Status) {
		ts := &st.Tasks[t.id]
		ts.State, ts.Err = s, text
		if s == Stopped || s == Failed || s == Fenced {
			ts.Partitions = nil
		}
	})
}

// retrying records an attempt that will be made again.
func (t *task) retrying(err error) {
	t.counts.Retries++
	t.log.Warn("will retry", "err", err)
	t.setState(Retrying, err)
	t.show()
}

// well records that the task does its work.
func (t *task) well() {
	t.setState(Running, nil)
	t.show()
}
