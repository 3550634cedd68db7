package session

import (
	"context"
	"errors"
	"fmt"
)

// Mode is what the commits of a producer promise when something fails in the middle.
type Mode int

const (
	// ExactlyOnce makes records and offsets visible together, in a transaction.
	ExactlyOnce Mode = iota
	// AtLeastOnce has no transaction: a commit waits until all records are
	// acknowledged, then commits the offsets. What fails in between leaves records
	// whose input is read again. They are visible before the commit.
	AtLeastOnce
	// AtMostOnce has no transaction: records are held back until a commit, which
	// commits the offsets, then sends the records. What fails in between leaves
	// offsets behind whose records never come. The offsets' generation keeps a
	// member that the group has dropped from sending anything.
	AtMostOnce
)

// String names the mode.
func (m Mode) String() string {
	switch m {
	case ExactlyOnce:
		return "exactly once"
	case AtLeastOnce:
		return "at least once"
	case AtMostOnce:
		return "at most once"
	}
	return fmt.Sprintf("mode %d", int(m))
}

func (m Mode) validate() error {
	if m < ExactlyOnce || m > AtMostOnce {
		return fmt.Errorf("session: ProducerOptions.Mode is %d, must be between %d and %d", int(m), int(ExactlyOnce), int(AtMostOnce))
	}
	return nil
}

// commitLoose is Commit without a transaction.
func (p *Producer) commitLoose(ctx context.Context, offsets Offsets, by Generation) error {
	first, second := StepFlush, StepOffsets
	tell := func(ctx context.Context) error { return p.tellOffsets(ctx, offsets, by) }
	do := []func(context.Context) error{p.deliver, tell}
	if p.options.Mode == AtMostOnce {
		first, second = second, first
		do[0], do[1] = tell, p.deliver
	}
	bounded, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	for i, s := range []Step{first, second} {
		if err := p.step(s); err != nil {
			return err
		}
		if err := do[i](bounded); err != nil {
			return errors.Join(err, p.Abort(ctx))
		}
	}
	p.finish()
	return p.step(StepDone)
}

// Flush waits until what was sent is acknowledged, at least once: whoever calls it
// between two records knows that the second is not there without the first. In the
// other modes nothing is visible before the commit, and Flush does nothing.
func (p *Producer) Flush(ctx context.Context) error {
	if p.broken != nil || !p.open || p.options.Mode != AtLeastOnce {
		return p.broken
	}
	bounded, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	return p.deliver(bounded)
}

// Mark commits offsets by themselves, whatever else is open.
func (p *Producer) Mark(ctx context.Context, offsets Offsets, by Generation) error {
	bounded, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	return p.tellOffsets(bounded, offsets, by)
}

// Held is how many bytes of records wait for the commit, at most once. In the other
// modes none do.
func (p *Producer) Held() int {
	if p.options.Mode != AtMostOnce || !p.open {
		return 0
	}
	p.sender.mu.Lock()
	n := p.sender.bytes
	p.sender.mu.Unlock()
	for _, l := range p.filled {
		if l.fill != nil {
			n += l.fill.builder.Size()
		}
	}
	return n
}

// Abandon lets go of everything as the end of the process would: records that have
// not gone out are forgotten, an open transaction is left to its timeout or to the
// next producer with its id.
func (p *Producer) Abandon() { p.drop() }
