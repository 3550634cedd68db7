package state

import "os"

// Sized is an image that knows how large it is.
type Sized interface {
	// Size is the number of rows, -1 where to count them would mean to read them,
	// and of bytes that the image takes, about, on disk or in memory.
	Size() (rows, bytes int64)
}

// ImageSize is about how large the store is, with what is committed and not yet in
// its image, where a row may count twice; ok is false where the image does not
// know. The owner of the store calls it.
func (o *Overlay) ImageSize() (rows, bytes int64, ok bool) {
	s, ok := o.image.(Sized)
	if !ok {
		return 0, 0, false
	}
	if rows, bytes = s.Size(); rows >= 0 {
		rows += int64(len(o.dirty))
	}
	return rows, bytes + int64(o.dirtyBytes), true
}

// Size implements Sized.
func (m *Memory) Size() (rows, bytes int64) {
	if m.rows == nil {
		return 0, 0
	}
	return int64(len(m.rows.byKey)), int64(m.rows.bytes)
}

// Size implements Sized: what the files take.
func (s *LevelDB) Size() (rows, bytes int64) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return -1, 0 // being closed or wiped
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else a compaction has just removed it
			bytes += info.Size()
		}
	}
	return -1, bytes
}
