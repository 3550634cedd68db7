package partition

import (
	"errors"

	"github.com/millrace/millrace/core/vfs"
)

// Rest closes the log files that nobody has used for a while, see [commitlog.Files]; whoever appends or reads next opens them again.
// asked tells that some of them hold bytes which are not synced, and that a flush will come, so that a later call can close them. A
// partition without such files costs a look.
func (p *Partition) Rest() (asked bool) {
	// Who holds flushing uses the files.
	if !p.log.Idle() || !p.flushing.TryLock() {
		return false
	}
	defer p.flushing.Unlock()
	files, asked := p.rest()
	var errs error
	for _, f := range files {
		errs = errors.Join(errs, f.Close())
	}
	if errs != nil { // everything in them was synced
		p.logger.Warn("closing a segment", "partition", p.name, "err", errs)
	}
	if asked {
		p.handle.Own()
	}
	return asked
}

// rest is Rest under the append lock; closing is the caller's. flushing is held.
func (p *Partition) rest() ([]vfs.File, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return nil, false
	}
	return p.log.Rest(nil)
}
