package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/broker/internal/logdir"
)

// How a draft takes the place of its pieces, so that after a crash at any moment there are the old segments or the new one, whole:
//
//  1. The draft (<base>.log.cleaned) is written and synced. The pieces are pinned: readers who hold one need its names no more.
//  2. It is renamed to <base>-<end>.swap, and that is made durable. From here on the new segment counts: the name says which offsets
//     it stands for, also where nothing is left of them.
//  3. In memory it replaces the pieces, for all who come now.
//  4. The pieces' other files are removed, which is made durable; then the swap file is renamed to <base>.log, over the first piece's,
//     and new index files are written.
//
// A recovery that finds a swap file does step 4 again. One that finds a .cleaned file removes it. Whatever fails in step 4 is tried
// again, by the next round or the next opening; until then nothing else removes or adds segments at the front of the log.

// ErrPiecesGone says that pieces of a draft were deleted while it was written: there is nothing to do.
var ErrPiecesGone = errors.New("the segments were deleted meanwhile")

// Begin claims the pieces for the draft, whose content is durable afterwards. The append lock is not held; lock gives it. An error
// leaves the draft to be discarded.
func (d *Draft) Begin(lock func(func() error) error) error {
	if err := d.complete(); err != nil {
		return err
	}
	for _, p := range d.pieces {
		if !p.s.acquire() {
			return ErrPiecesGone
		}
		if err := errors.Join(d.l.pin(p.s), p.s.release()); err != nil {
			return err
		}
	}
	return lock(func() error {
		if d.l.swap != nil || d.l.place(d.pieces) < 0 {
			return ErrPiecesGone
		}
		d.l.swap = &swap{draft: d} // giveUp waits from here on
		return nil
	})
}

// place is the index of the pieces in the list of segments, -1 when they are not there any more.
func (l *Log) place(pieces []Piece) int {
	list := l.list()
	at := slices.Index(list, pieces[0].s)
	if at < 0 || at+len(pieces) >= len(list) {
		return -1
	}
	for i, p := range pieces {
		if list[at+i] != p.s {
			return -1
		}
	}
	return at
}

// Publish makes the draft durable as the one that counts. An error that is Fatal leaves open which of the two does after a crash;
// any other one leaves the draft to be given back with Abandon.
func (d *Draft) Publish() error {
	to := filepath.Join(d.l.at.dir, swapName(d.pieces))
	if err := d.l.at.fs.Rename(d.path(), to); err != nil {
		return fmt.Errorf("%s: %w", d.l.o.Name, err)
	}
	if err := d.l.at.fs.SyncDir(d.l.at.dir); err != nil {
		return &syncError{d.l.at.dir, err}
	}
	return nil
}

// Abandon gives the claim of the pieces back. The append lock is held.
func (l *Log) Abandon() {
	l.swap = nil
	l.giveUp()
}

// Replace puts the new segment into the list, for all who come from now on, and returns a function that lets the old ones go,
// which readers may still hold. The append lock is held; Publish has succeeded.
func (l *Log) Replace() (release func() error) {
	d := l.swap.draft
	at := l.place(d.pieces) // nothing has changed it since Begin
	list := slices.Replace(slices.Clone(l.list()), at, at+len(d.pieces), d.s)
	l.swaps.Add(1) // first: who has counted after it has a view of after it too, see Swaps
	l.segments.Store(&list)
	return func() error {
		var errs error
		for _, p := range d.pieces {
			errs = errors.Join(errs, p.s.release())
		}
		return errs
	}
}

// Swaps counts the replacements. Who looks something up below a published [Position] reads the count before it loads the position,
// and again at the end: if it has changed the position may speak of a segment that is not there any more, and he begins anew.
// Otherwise it does not, as nothing at or above a published position is ever replaced.
func (l *Log) Swaps() int64 { return l.swaps.Load() }

// Pending tells whether a replacement counts whose files are not in place yet. The append lock is held.
func (l *Log) Pending() bool { return l.swap != nil }

// Settle puts the files of the published draft in place, however often it takes. The append lock is not held.
func (l *Log) Settle() error {
	w := l.swap
	if w.done {
		return nil
	}
	d := w.draft
	if err := l.clearPieces(d.pieces); err != nil {
		return err
	}
	if err := l.at.fs.Rename(filepath.Join(l.at.dir, swapName(d.pieces)), d.s.path(logSuffix)); err != nil {
		return fmt.Errorf("%s: %w", l.o.Name, err)
	}
	w.done = true // the names are right; if the sync below fails the partition ends
	mem := d.s.mem.Load()
	if err := d.s.replaceIndexes(); Fatal(err) {
		return err
	} else if err != nil {
		l.logger.Warn("an index of a compacted segment can't be written", "partition", l.o.Name, "segment", d.s.base, "err", err)
		mem = nil
	}
	if err := l.at.fs.SyncDir(l.at.dir); err != nil {
		return &syncError{l.at.dir, err}
	}
	if mem != nil {
		d.s.mem.Store(nil) // from the files from now on
	}
	return nil
}

// clearPieces removes all files of the pieces but the first one's log, durably.
func (l *Log) clearPieces(pieces []Piece) error {
	for i, p := range pieces {
		for _, suffix := range allSuffixes {
			if i == 0 && suffix == logSuffix {
				continue
			}
			if err := l.at.fs.Remove(p.s.path(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: %w", l.o.Name, err)
			}
		}
	}
	if err := l.at.fs.SyncDir(l.at.dir); err != nil {
		return &syncError{l.at.dir, err}
	}
	return nil
}

// Settled ends the replacement; Settle has succeeded. The append lock is held.
func (l *Log) Settled() {
	l.swap = nil
	l.giveUp()
}

func swapName(pieces []Piece) string {
	return logdir.SwapName(pieces[0].Base, pieces[len(pieces)-1].End)
}

// finishSwap does for a recovery what Settle does, but for the indexes, which are built again where they are missing. names are
// those of the folder; what is left of them comes back.
func (r *recovery) finishSwap(name string, names []string) ([]string, error) {
	o := &r.l.o
	base, end, ok := logdir.ParseSwap(name)
	if !ok {
		return nil, fmt.Errorf("%s: %s is left of a compaction that another program did not finish; start that program once more, "+
			"or remove the file if its segment is whole", o.Name, name)
	}
	var left []string
	log := fileName(base, logSuffix)
	for _, other := range names {
		offset, suffix, own := parseName(other)
		if other == name || other == log || own && suffix != snapshotSuffix && offset >= base && offset < end {
			if other != name && other != log {
				if err := r.l.at.fs.Remove(filepath.Join(r.l.at.dir, other)); err != nil {
					return nil, fmt.Errorf("%s: %w", o.Name, err)
				}
			}
			continue
		}
		left = append(left, other)
	}
	if err := r.l.at.fs.SyncDir(r.l.at.dir); err != nil {
		return nil, &syncError{r.l.at.dir, err}
	}
	if err := r.l.at.fs.Rename(filepath.Join(r.l.at.dir, name), filepath.Join(r.l.at.dir, log)); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if err := r.l.at.fs.SyncDir(r.l.at.dir); err != nil {
		return nil, &syncError{r.l.at.dir, err}
	}
	left = append(left, log)
	slices.Sort(left)
	r.l.logger.Info("a compaction that a crash interrupted is finished", "partition", o.Name, "segment", base)
	return left, nil
}
