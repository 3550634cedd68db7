package inspect

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/broker/internal/flush"
)

var (
	// ErrHasJournal says that there is a journal, so none is to be made.
	ErrHasJournal = errors.New("the data folder has a recovery journal")
	// ErrNotOurs says that no Millrace broker keeps the folder.
	ErrNotOurs = errors.New("no data folder of Millrace")
)

// NewJournal begins a recovery journal in a folder of ours that has lost it, as one that was copied in part. Every byte is verified
// first, and from then on all that is in the logs counts as durable. What only the old journal knew is gone: records that
// DeleteRecords had hidden, and whose segments are still there, are visible again.
func (d *Data) NewJournal(o VerifyOptions) (err error) {
	switch {
	case d.one || d.Properties["millrace.format"] == "":
		return fmt.Errorf("inspect: %s: %w", d.Dir, ErrNotOurs)
	case d.journal != nil:
		return fmt.Errorf("inspect: %s: %w", d.Dir, ErrHasJournal)
	}
	release, err := d.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	points := map[flush.ID]flush.Point{}
	for _, p := range d.Partitions {
		var wrong error
		c := d.newCheck(p, o, func(f Finding) {
			if f.Severity > Rebuildable {
				wrong = errors.Join(wrong, errors.New(f.String()))
			}
		})
		if err := c.run(); err != nil {
			return err
		}
		if wrong != nil {
			return fmt.Errorf("inspect: %s: %w: %w", d.Dir, ErrLostMore, wrong)
		}
		if len(p.logs) == 0 {
			continue
		}
		for _, base := range p.logs {
			if err := syncFile(d.fs, p.path(fileName(base, logSuffix))); err != nil {
				return err
			}
		}
		points[newRebuild(d, p, nil).id] = flush.Point{Synced: c.next, LogStart: p.logs[0]}
	}
	if err := flush.ChangeJournal(d.fs, d.Dir, func(to map[flush.ID]flush.Point) {
		for id, point := range points {
			to[id] = point
		}
	}); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	again, err := Open(d.fs, d.Dir)
	if err != nil {
		return err
	}
	*d = *again
	return nil
}
