package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/txn/session"
)

// Source runs a source connector: see the package comment.
type Source struct {
	o     SourceOptions
	name  string
	board *board // one TaskStatus per part
	once  sync.Once
}

// NewSource checks the settings. Nothing is connected yet.
func NewSource(o SourceOptions) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	spec := o.Source.Spec()
	return &Source{o: o, name: spec.Name, board: newBoard(Status{
		Connector: spec.Connector, Name: spec.Name, Guarantee: connectors.Guaranteed(spec, connectors.ReadCommitted),
	})}, nil
}

// Status returns a snapshot: one task per part, without partitions.
func (s *Source) Status() Status {
	st, _ := s.board.snapshot()
	return st
}

// Await returns the first status that fits, as soon as it does; or the last one
// seen, with an error, when ctx ends.
func (s *Source) Await(ctx context.Context, fits func(Status) bool) (Status, error) {
	return s.board.await(ctx, fits)
}

// Run reads until all parts have ended or ctx ends, and then returns nil. An
// error matches connectors.ErrFenced when another process has taken over a part.
// Run may be called once.
func (s *Source) Run(ctx context.Context) error {
	err := fmt.Errorf("%w: Run may be called once", connectors.ErrConfig)
	s.once.Do(func() { err = s.run(ctx) })
	return err
}

func (s *Source) run(ctx context.Context) error {
	stop, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	defer context.AfterFunc(stop, func() { // the deadline of a stop
		timer := time.AfterFunc(s.o.StopTimeout, kill)
		context.AfterFunc(work, func() { timer.Stop() })
	})()
	parts, err := s.prepare(stop)
	if err != nil {
		if stop.Err() != nil {
			return nil
		}
		return err
	}
	s.board.update(func(st *Status) {
		st.Tasks = make([]TaskStatus, len(parts))
		for i := range parts {
			st.Tasks[i] = TaskStatus{Task: i, State: Starting}
		}
	})
	errs := make([]error, len(parts))
	slots := make(chan struct{}, s.o.Tasks)
	var wg sync.WaitGroup
	for i, p := range parts {
		select {
		case slots <- struct{}{}:
		case <-stop.Done():
			s.setState(i, Stopped, nil)
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			r := &partRun{s: s, index: i, part: p}
			if errs[i] = r.run(stop, work); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// prepare makes sure of the topic of positions and lists the parts.
func (s *Source) prepare(ctx context.Context) ([]connectors.SourcePart, error) {
	client, err := kgo.NewClient(dial(s.o.Cluster, "millrace-connector-"+s.name)...)
	if err != nil {
		return nil, fmt.Errorf("%w: client: %w", connectors.ErrConfig, err)
	}
	defer client.Close()
	for attempt := 0; ; attempt++ {
		err := ensureCompacted(ctx, client, s.o.PositionTopic)
		if err == nil {
			break
		}
		if errors.Is(err, connectors.ErrConfig) {
			return nil, err
		}
		s.o.Logger.Warn("topic of positions", "err", err)
		if err := s.wait(ctx, attempt); err != nil {
			return nil, err
		}
	}
	parts, err := s.o.Source.Parts(ctx)
	if err != nil {
		return nil, fmt.Errorf("source %s: parts: %w", s.name, err)
	}
	return parts, nil
}

func (s *Source) wait(ctx context.Context, attempt int) error {
	d := s.o.RetryMin << min(attempt, 20)
	if d <= 0 || d > s.o.RetryMax {
		d = s.o.RetryMax
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errStopping
	}
}

func (s *Source) setState(i int, state State, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.board.update(func(st *Status) { st.Tasks[i].State, st.Tasks[i].Err = state, text })
}

// partRun is the work on one part; one goroutine owns it.
type partRun struct {
	s       *Source
	index   int
	part    connectors.SourcePart
	cluster *session.Cluster
	out     *session.Producer // nil until the first attempt
	records int64
}

// run tries until the part has ended, the source is stopped, or it makes no
// sense to go on.
func (r *partRun) run(stop, work context.Context) (err error) {
	defer func() { err = r.finish(work, stop.Err() != nil, err) }()
	r.cluster, err = session.Connect(stop, session.ClusterOptions{
		Seeds: r.s.o.Cluster.Seeds(), Dial: r.s.o.Cluster.Dial, ClientID: "millrace-source-" + r.s.name, Logger: r.s.o.Logger,
	})
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		before := r.records
		err := r.guarded(stop, work)
		if r.records > before {
			attempt = 0
		}
		if err == nil || stop.Err() != nil || !transient(err) {
			return err
		}
		r.s.o.Logger.Warn("will start again from the stored position", "source", r.s.name, "part", r.part.Name, "err", err)
		r.s.board.update(func(st *Status) { st.Tasks[r.index].Retries++ })
		r.s.setState(r.index, Retrying, err)
		if err := r.s.wait(stop, attempt); err != nil {
			return err
		}
	}
}

// transient reports whether starting again from the stored position may help.
func transient(err error) bool {
	for _, hopeless := range []error{connectors.ErrConfig, connectors.ErrFenced, session.ErrFenced,
		kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidTopicException, kerr.InvalidTransactionTimeout,
		kerr.TopicAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed, kerr.InvalidTimestamp} {
		if errors.Is(err, hopeless) {
			return false
		}
	}
	return true
}

func (r *partRun) finish(work context.Context, stopped bool, err error) error {
	bye, cancel := context.WithTimeout(work, r.s.o.StopTimeout)
	defer cancel()
	if r.out != nil {
		if e := r.out.Close(bye); e != nil && err == nil && !stopped {
			r.s.o.Logger.Warn("closing the producer", "source", r.s.name, "part", r.part.Name, "err", e)
		}
	}
	if r.cluster != nil {
		r.cluster.Close()
	}
	switch {
	case err == nil, stopped && transient(err):
		r.s.setState(r.index, Stopped, nil)
		return nil
	case errors.Is(err, session.ErrFenced), errors.Is(err, connectors.ErrFenced):
		r.s.setState(r.index, Fenced, err)
		return fmt.Errorf("source %s, part %s: %w: another process has taken over, or a transaction was open for longer than %v: %w",
			r.s.name, r.part.Name, connectors.ErrFenced, r.s.o.TransactionTimeout, err)
	}
	r.s.setState(r.index, Failed, err)
	return fmt.Errorf("source %s, part %s: %w", r.s.name, r.part.Name, err)
}

// guarded is attempt with a panic of the connector made an error, which stops
// this source and nothing else.
func (r *partRun) guarded(stop, work context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: part %s panicked: %v\n%s", connectors.ErrConfig, r.part.Name, p, debug.Stack())
		}
	}()
	return r.attempt(stop, work)
}

// attempt fences, reads the stored position and goes on from there.
func (r *partRun) attempt(stop, work context.Context) (err error) {
	if err := r.claim(stop); err != nil {
		return err
	}
	if err := connectors.Reach(stop, PointClaimed); err != nil {
		return err
	}
	key := sourceKey{Source: r.s.name, Part: r.part.Name}
	at, err := r.position(stop, key)
	if err != nil {
		return err
	}
	if at != nil && at.Done {
		r.report(connectors.Unit{Pos: *at, Total: -1}) // read by an earlier run
		return nil
	}
	reader, err := r.s.o.Source.Open(stop, r.part, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }() // also when the reader panics
	if err := connectors.Reach(stop, PointOpened); err != nil {
		return err
	}
	r.s.setState(r.index, Running, nil)
	for stop.Err() == nil {
		err := r.unit(stop, work, reader, key)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// claim initialises the producer, which fences every earlier one of this part
// and ends its transaction.
func (r *partRun) claim(ctx context.Context) error {
	if r.out != nil {
		return r.out.Renew(ctx)
	}
	out, err := r.cluster.NewProducer(ctx, session.ProducerOptions{
		TransactionalID: "millrace-source/" + r.s.name + "/" + r.part.Name,
		Timeout:         r.s.o.TransactionTimeout,
	})
	if err != nil {
		return err
	}
	r.out = out
	return nil
}

// position writes the part's start record and reads up to it; see readPosition.
func (r *partRun) position(ctx context.Context, k sourceKey) (*connectors.SourcePos, error) {
	key, id, err := startRecord(k)
	if err != nil {
		return nil, err
	}
	if err := r.out.Send(ctx, &session.Record{Topic: r.s.o.PositionTopic, Key: key, Value: []byte(id)}, nil); err != nil {
		return nil, errors.Join(err, r.out.Abort(ctx))
	}
	if err := r.out.Commit(ctx, nil, session.Generation{}); err != nil {
		return nil, err
	}
	return readPosition(ctx, r.s.o.Cluster, r.s.o.PositionTopic, k, id)
}

// unit moves one unit into the log. io.EOF: there is none any more.
func (r *partRun) unit(stop, work context.Context, reader connectors.Reader, key sourceKey) error {
	u, err := reader.Next(stop)
	if err != nil {
		return err
	}
	if err := connectors.Reach(stop, PointRead); err != nil {
		return err
	}
	if err := r.send(work, u, key); err != nil {
		return errors.Join(err, r.out.Abort(work))
	}
	if err := connectors.Reach(stop, PointSent); err != nil {
		return err
	}
	if err := r.out.Commit(work, nil, session.Generation{}); err != nil {
		return err
	}
	if err := connectors.Reach(stop, PointDurable); err != nil {
		return err
	}
	r.records += int64(len(u.Records))
	r.progress(u)
	if err := reader.Committed(work, u.Pos); err != nil {
		return err
	}
	if err := connectors.Reach(stop, PointUpstream); err != nil {
		return err
	}
	if u.Pos.Done {
		return io.EOF
	}
	return nil
}

func (r *partRun) send(ctx context.Context, u connectors.Unit, key sourceKey) error {
	for i := range u.Records {
		p := &u.Records[i]
		rec := session.Record{Topic: p.Topic, Partition: p.Partition, Time: p.Time, Key: p.Key, Value: p.Value}
		if p.Partition < 0 {
			rec.Partition = session.ByKey
		}
		for _, h := range p.Headers {
			rec.Headers = append(rec.Headers, session.Header{Key: h.Key, Value: h.Value})
		}
		if err := r.out.Send(ctx, &rec, nil); err != nil {
			return err
		}
	}
	k, v, err := encodePosition(key, u.Pos)
	if err != nil {
		return err
	}
	return r.out.Send(ctx, &session.Record{Topic: r.s.o.PositionTopic, Key: k, Value: v}, nil)
}

func (r *partRun) progress(u connectors.Unit) {
	r.s.board.update(func(st *Status) {
		ts := &st.Tasks[r.index]
		ts.Commits++
		ts.Records = r.records
	})
	r.report(u)
}

func (r *partRun) report(u connectors.Unit) {
	if r.s.o.OnProgress != nil {
		r.s.o.OnProgress(Progress{Part: r.part.Name, Records: r.records, Read: u.Read, Total: u.Total, Done: u.Pos.Done})
	}
}
