package state

import "os"

// Sized is an image that knows how large it is.
type Sized interface {
	// Size is the number of rows, -1 where to count them would mean to read them,
	// and of bytes that the image takes, about, on disk or in memory.
	Size() (rows, bytes int64)
}

// ImageSize is how large the store's image is; ok is false where it does not know.
// What is not yet in the image is not counted. The owner of the store calls it.
func (o *Overlay) ImageSize() (rows, bytes int64, ok bool) {
	s, ok := o.image.(Sized)
	if !ok {
		return 0, 0, false
	}
	rows, bytes = s.Size()
	return rows, bytes, true
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
