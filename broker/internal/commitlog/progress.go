package commitlog

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"path/filepath"

	"github.com/millrace/millrace/core/vfs"
)

// progressName is our counterpart of Kafka's file of that name in the data folder: how far compaction has come. It lies in the
// partition's folder, so that it comes and goes with it.
const progressName = "cleaner-offset-checkpoint"

// Progress is how far the compaction of a log has come. It is written before a round changes anything, and after it.
type Progress struct {
	Cleaned   int64 // rounds have seen all records below
	Rewritten int64 // below it batches may be missing: gaps in the offsets are no damage
	HorizonMs int64 // when something may go that only waits for its delete horizon; math.MaxInt64 when nothing does
}

const progressText = "version: 0\ncleaned: %d\nrewritten: %d\nhorizon: %d\n"

func (p Progress) encode() []byte {
	text := fmt.Appendf(nil, progressText, p.Cleaned, p.Rewritten, p.HorizonMs)
	return fmt.Appendf(text, "crc: %08x\n", crc32.Checksum(text, castagnoli))
}

func decodeProgress(text []byte) (p Progress, err error) {
	var sum uint32
	if _, err = fmt.Sscanf(string(text), progressText+"crc: %08x\n", &p.Cleaned, &p.Rewritten, &p.HorizonMs, &sum); err != nil {
		return Progress{}, err
	}
	if string(p.encode()) != string(text) {
		return Progress{}, errors.New("its checksum does not match")
	}
	return p, nil
}

// Progress is how far compaction has come. Whoever compacts owns it.
func (l *Log) Progress() Progress { return l.progress }

// SetProgress makes it durable.
func (l *Log) SetProgress(p Progress) error {
	if p == l.progress {
		return nil
	}
	if err := vfs.WriteFile(l.o.FS, filepath.Join(l.o.Dir, progressName), p.encode(), true); err != nil {
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
	text, err := vfs.ReadFile(l.o.FS, filepath.Join(l.o.Dir, progressName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
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
func (l *Log) mayGap(from int64) bool { return l.o.Config.Compacted || from < l.rewritten.Load() }
