package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/connectors"
)

// Sink runs a sink connector: see the package comment.
type Sink struct {
	o     SinkOptions
	sinks []connectors.TxSink // one per task, owned by its goroutine once Run has begun
	board *board
	once  sync.Once
}

// NewSink checks the settings and computes the guarantee. An error matches
// connectors.ErrConfig; settings that weaken the guarantee are one unless
// AllowWeaker is set. Nothing is connected yet.
func NewSink(o SinkOptions) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Sink{o: o}
	for i := range o.Tasks {
		sink, err := o.New(i)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("sink of task %d: %w", i, err), s.closeSinks())
		}
		s.sinks = append(s.sinks, sink)
	}
	spec := s.sinks[0].Spec()
	stated := connectors.Guaranteed(spec, o.Isolation)
	err := stated.Allow(o.AllowWeaker)
	if err == nil && spec.Name == "" {
		err = fmt.Errorf("%w: the sink's Spec has no Name", connectors.ErrConfig)
	}
	if err != nil {
		return nil, errors.Join(err, s.closeSinks())
	}
	or(&s.o.Group, "connect-"+spec.Name)
	status := Status{Connector: spec.Connector, Name: spec.Name, Guarantee: stated, Tasks: make([]TaskStatus, o.Tasks)}
	for i := range status.Tasks {
		status.Tasks[i] = TaskStatus{Task: i, State: Starting}
	}
	s.board = newBoard(status)
	return s, nil
}

func (s *Sink) closeSinks() error {
	var errs []error
	for _, sink := range s.sinks {
		errs = append(errs, sink.Close())
	}
	return errors.Join(errs...)
}

// Guarantee returns what the connector can state with its settings.
func (s *Sink) Guarantee() connectors.Stated {
	st, _ := s.board.snapshot()
	return st.Guarantee
}

// Check looks at the store as connectors.Sink.Check does. It is called before
// Run, for example by a command that only validates.
func (s *Sink) Check(ctx context.Context) []connectors.Issue { return s.sinks[0].Check(ctx) }

// Status returns a snapshot.
func (s *Sink) Status() Status {
	st, _ := s.board.snapshot()
	return st
}

// Await returns the first status that fits, as soon as it does; or the last one
// seen, with an error, when ctx ends.
func (s *Sink) Await(ctx context.Context, fits func(Status) bool) (Status, error) {
	return s.board.await(ctx, fits)
}

// Run works until ctx ends, and then returns nil after the commit in hand, within
// StopTimeout. It returns early, with all tasks stopped, when one of them fails;
// an error matches connectors.ErrFenced when another process has taken over this
// one's membership. Run may be called once.
func (s *Sink) Run(ctx context.Context) error {
	err := fmt.Errorf("%w: Run may be called once", connectors.ErrConfig)
	s.once.Do(func() { err = s.run(ctx) })
	return err
}

func (s *Sink) run(ctx context.Context) error {
	name := s.Status().Name
	claims, err := newClaimer(s.o.Cluster, name, s.o.ClaimTopic)
	if err != nil {
		return errors.Join(err, s.closeSinks())
	}
	defer claims.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	defer context.AfterFunc(ctx, func() { // the deadline of a stop
		timer := time.AfterFunc(s.o.StopTimeout, kill)
		context.AfterFunc(work, func() { timer.Stop() })
	})()
	if err := s.untilReady(ctx, claims); err != nil {
		return errors.Join(err, s.closeSinks())
	}
	var wg sync.WaitGroup
	errs := make([]error, len(s.sinks))
	for i := range s.sinks {
		t := s.task(i, claims)
		wg.Go(func() {
			if errs[i] = t.run(ctx, work); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// untilReady makes sure of the topic of claims and of the topics to read, for as
// long as it takes. nil also when the connector is stopped meanwhile.
func (s *Sink) untilReady(ctx context.Context, claims *claimer) error {
	for d := s.o.RetryMin; ; d = min(2*d, s.o.RetryMax) {
		err := claims.ensure(ctx)
		if err == nil {
			err = missing(ctx, claims.client, s.o.Topics)
		}
		if err == nil || errors.Is(err, connectors.ErrConfig) {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		s.o.Logger.Warn("waiting for the cluster", "err", err)
		s.board.update(func(st *Status) {
			for i := range st.Tasks {
				st.Tasks[i].State, st.Tasks[i].Err = Retrying, err.Error()
			}
		})
		timer := time.NewTimer(d)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (s *Sink) task(i int, claims *claimer) *task {
	return &task{
		id: i, o: &s.o, sink: s.sinks[i], spec: s.sinks[i].Spec(), claims: claims,
		box: newMailbox(), board: s.board, log: s.o.Logger.With("sink", s.sinks[i].Spec().Name, "task", i),
		parts: map[connectors.TP]*part{}, fatal: make(chan error, 1),
	}
}
