package partition

import (
	"errors"

	"github.com/millrace/millrace/broker/internal/commitlog"
)

// Scrub goes over everything in the partition that is not appended to any more, and looks whether it is still as it was written:
// see commitlog.Scrub. One goroutine owns it.
type Scrub struct {
	p *Partition
	c *commitlog.Scrub
}

// Scrub begins at the oldest segment.
func (p *Partition) Scrub() *Scrub { return &Scrub{p, p.log.Scrub()} }

// Name is the partition's.
func (s *Scrub) Name() string { return s.p.name }

// Step looks at about so many bytes. It takes no lock that an append or a fetch waits for. Each damaged batch is in the log once, and
// served no more from then on. A partition that is offline is done.
func (s *Scrub) Step(bytes int64) (commitlog.Scrubbed, error) {
	if s.p.failed.Load() != nil {
		return commitlog.Scrubbed{Done: true}, nil
	}
	did, err := s.c.Step(bytes)
	if s.p.failed.Load() != nil { // closed meanwhile
		return commitlog.Scrubbed{Done: true}, nil
	}
	for _, d := range did.Damage {
		s.p.logger.Error("the scrub has found damage; the batch is served no more", "partition", s.p.name, "segment", d.File,
			"position", d.Position, "offset", d.Offset, "err", d)
	}
	if err != nil && !errors.Is(err, commitlog.ErrOutOfRange) {
		return did, s.p.storage("scrub", err)
	}
	return did, nil
}
