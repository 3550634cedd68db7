package flush

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/millrace/millrace/core/vfs"
)

// Gap is bytes of a journal that hold no record that checks. After a power cut there may be some: records that were never synced.
type Gap struct {
	Position, Bytes int64
	// Flipped is the byte of the one bit that would make a record of the gap, -1 when there is none: then it was synced once.
	Flipped int64
}

// Reading is what a journal says, read without a broker.
type Reading struct {
	Points  map[ID]Point
	Entries int
	// Gaps are the places that are skipped. One at the very end is what a crash leaves.
	Gaps []Gap
	Size int64
}

// ReadJournal reads the bytes of a journal for a tool; nothing is written. The error is that of a file that is no journal, or of
// a newer version.
func ReadJournal(data []byte) (Reading, error) {
	r := Reading{Points: map[ID]Point{}, Size: int64(len(data))}
	head := len(journalHead)
	if len(data) < head || !bytes.Equal(data[:8], journalHead[:8]) {
		return r, fmt.Errorf("flush: these %d bytes are no recovery journal", len(data))
	}
	if v := binary.BigEndian.Uint32(data[8:]); v != 1 {
		return r, fmt.Errorf("%w: version %d, this program knows 1", ErrNewerJournal, v)
	}
	for at := head; at < len(data); {
		kind, id, v, size := readEntry(data[at:])
		if size > 0 {
			apply(r.Points, kind, id, v)
			r.Entries++
			at += size
			continue
		}
		if n := len(r.Gaps); n > 0 && r.Gaps[n-1].Position+r.Gaps[n-1].Bytes == int64(at) {
			r.Gaps[n-1].Bytes++
		} else {
			r.Gaps = append(r.Gaps, Gap{int64(at), 1, -1})
		}
		at++
	}
	for i := range r.Gaps {
		g := &r.Gaps[i]
		g.Flipped = flipped(data[g.Position : g.Position+g.Bytes])
		if g.Flipped >= 0 {
			g.Flipped += g.Position
		}
	}
	return r, nil
}

// flipped looks for the one bit whose flip makes a record of all of p.
func flipped(p []byte) int64 {
	if len(p) < entryHead || len(p) > maxEntry {
		return -1
	}
	try := bytes.Clone(p)
	for i := range try {
		for bit := range 8 {
			try[i] ^= 1 << bit
			if _, _, _, size := readEntry(try); size == len(try) {
				return int64(i)
			}
			try[i] ^= 1 << bit
		}
	}
	return -1
}

// ChangeJournal puts a journal in place that says what change makes of the old one's state; a folder without a journal begins
// one. The caller holds the data folder's lock: no Flusher may have the journal.
func ChangeJournal(fsys vfs.FS, dir string, change func(map[ID]Point)) error {
	j, err := openJournal(fsys, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	change(j.state)
	if err := vfs.WriteFile(fsys, filepath.Join(dir, JournalName), j.image(), true); err != nil {
		return fmt.Errorf("flush: %w (and closing: %v)", err, j.file.Close())
	}
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// Pending tells how many bytes the append journals of a folder hold that its other files may not have on the disk; 0 after a clean stop.
func Pending(fsys vfs.FS, dir string) (bytes int64, err error) {
	pieces, _, _, err := carried(fsys, dir)
	for _, p := range pieces {
		bytes += int64(len(p.Data))
	}
	return bytes, err
}

// Redo does what the start of a broker does first: it puts what the append journals hold where it belongs. It tells whether there were
// any. The caller holds the data folder's lock.
func Redo(fsys vfs.FS, dir string) (done bool, err error) {
	_, _, names, err := carried(fsys, dir)
	if err != nil || len(names) == 0 {
		return false, err
	}
	j, err := openJournal(fsys, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	_, err = redoCarried(j, 1)
	if cerr := j.file.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("flush: %w", cerr)
	}
	return true, err
}
