package coord

import (
	"errors"

	"github.com/millrace/millrace/broker/internal/partition"
)

// step collects, under the lock, what has to happen outside of it.
type step struct {
	generation int
	log        Log
	last       int64
	replies    []Reply
	effects    []any
	failures   []Reply
	// lost says that the machine does not follow its log any more.
	lost error
}

// begin, apply, resume and end run under mu, in this order; release runs after it.
func (s *Shard[M]) begin() step { return step{generation: s.generation, log: s.log} }

// apply appends and replays an output. to is the caller that it is about, told too
// when that fails.
func (s *Shard[M]) apply(st *step, out Output, to Token) (ok bool) {
	if st.lost != nil {
		return false
	}
	if err := s.append(out); err != nil {
		s.fail(st, out, to, err)
		return false
	}
	if out.Applied != nil {
		out.Applied()
	}
	st.replies = append(st.replies, out.Replies...)
	st.effects = append(st.effects, out.Effects...)
	return true
}

// fail tells everybody whom the output would have answered, now or later.
func (s *Shard[M]) fail(st *step, out Output, to Token, err error) {
	st.lost = s.fatal(err)
	failure := Failure{Code: CodeCoordinatorNotAvailable, Err: err, Lost: st.lost != nil}
	if errors.Is(err, errTooLarge) {
		failure.Code = CodeRecordListTooLarge
	}
	told := append([]Token{to}, out.Pending...)
	for _, r := range out.Replies {
		told = append(told, r.To)
	}
	forgetter, _ := any(s.machine).(Forgetter)
	for _, to := range told {
		if to == 0 {
			continue
		}
		st.failures = append(st.failures, Reply{To: to, Response: failure})
		if forgetter != nil {
			forgetter.Forget(to)
		}
	}
}

// fatal says whether an error of an append means that machine and log are apart or
// that the log is gone. Others, such as that of a full disk, change nothing: the
// machine goes on with what it knows, and answers all that needs no record.
func (s *Shard[M]) fatal(err error) error {
	var pe *partition.Error
	if errors.Is(err, errReplay) || errors.As(err, &pe) && pe.Offline {
		return err
	}
	return nil
}

// resume lets parked requests go on.
func (s *Shard[M]) resume(st *step) {
	r, ok := any(s.machine).(Resumer)
	for ok && st.lost == nil {
		var out Output
		if out, ok = r.Resume(s.nowMs()); ok {
			s.apply(st, out, 0)
		}
	}
}

// end closes the step, before the lock is given back.
func (s *Shard[M]) end(st *step) { st.last = s.last }

// release does what a step left to do, without the lock.
func (s *Shard[M]) release(st step) {
	for _, f := range st.failures {
		s.waiters.deliver(f.To, f.Response)
	}
	if st.lost != nil {
		s.lose(st.generation, st.lost)
		return
	}
	if len(st.replies)+len(st.effects) == 0 {
		return
	}
	if st.last < 0 {
		s.settle(st, nil)
		return
	}
	st.log.Await(st.last, func(err error) { s.settle(st, err) })
}

// settle runs when a step is durable, or never will be. It is called by the log and
// takes no lock but that of the waiters.
func (s *Shard[M]) settle(st step, err error) {
	if err != nil {
		s.work.push(func() { s.lose(st.generation, err) })
		return
	}
	for _, r := range st.replies {
		s.waiters.deliver(r.To, r.Response)
	}
	if len(st.effects) > 0 {
		s.work.push(func() {
			for _, e := range st.effects {
				s.o.Effect(s, e)
			}
		})
	}
}
