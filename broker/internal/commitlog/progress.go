package commitlog

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/millrace/millrace/core/vfs"
)

// Progress is how far compaction has come. Whoever compacts owns it.
func (l *Log) Progress() Progress { return l.progress }

// SetProgress makes it durable.
func (l *Log) SetProgress(p Progress) error {
	if p == l.progress {
		return nil
	}
	if err := vfs.WriteFile(l.at.fs, filepath.Join(l.at.dir, progressName), p.encode(), true); err != nil {
		return fmt.Errorf("%s: %w", l.o.Name, err)
	}
	l.rewritten.Store(p.Rewritten)
	l.progress = p
	return nil
}

// loadProgress reads the file. One that does not check costs another round over the whole log, and the knowledge which gaps are no
// damage.
func (r *recovery) loadProgress() error {
	l := r.l
	l.progress = Progress{HorizonMs: math.MaxInt64}
	if !r.names[progressName] {
		return nil
	}
	text, err := vfs.ReadFile(l.at.fs, filepath.Join(l.at.dir, progressName))
	if err != nil {
		return fmt.Errorf("%s: %w", l.o.Name, err)
	}
	p, err := decodeProgress(text)
	if err != nil {
		l.logger.Warn("the progress of compaction does not check; it begins anew", "partition", l.o.Name, "err", err)
		p = Progress{HorizonMs: math.MaxInt64, Rewritten: math.MaxInt64}
	}
	l.progress = p
	l.rewritten.Store(p.Rewritten)
	return nil
}

// mayGap tells whether batches may be missing from an offset on.
func (l *Log) mayGap(from int64) bool { return l.Config().Compacted || from < l.rewritten.Load() }
