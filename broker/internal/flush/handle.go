package flush

import (
	"fmt"
	"path/filepath"
)

// Point is what the journal knows of the partition. The zero Point is what it knows of a new one.
func (h *Handle) Point() Point {
	if h.f.journal == nil {
		return Point{}
	}
	return h.f.journal.point(h.id)
}

// NoteSynced records that every batch below offset is durable in the partition's own files; call it after their sync.
func (h *Handle) NoteSynced(offset int64) {
	h.filed()
	h.note(kindSynced, [6]int64{offset})
}

// filed says that the append journals are not needed for the partition.
func (h *Handle) filed() {
	if h.carrier != nil {
		h.f.carry.filed(h)
	}
}

// Own asks for a flush of the target's own files, also where an append journal holds what they lack.
func (h *Handle) Own() { h.file() }

// Carries tells whether append journals take pieces of files in folders of dir.
func (h *Handle) Carries(dir string) bool {
	return h.carrier != nil && filepath.Clean(h.f.o.Dir) == dir
}

// NoteCheckpoint records where recovery may start; call it after everything that [Checkpoint] promises is durable.
func (h *Handle) NoteCheckpoint(c Checkpoint) {
	h.note(kindCheckpoint, [6]int64{c.Offset, c.Segment, c.Position, c.Index, c.TimeIndex, c.TxnIndex})
}

// Settle makes durable what has been noted of the partition, and returns it. known is false without a journal.
func (h *Handle) Settle() (p Point, known bool, err error) {
	j := h.f.journal
	if j == nil {
		return Point{}, false, nil
	}
	p = j.point(h.id) // what comes while it syncs may not be
	if err := j.sync(); err != nil {
		return Point{}, true, fmt.Errorf("flush: recovery journal: %w", err)
	}
	return p, true, nil
}

// Spoil says that the partition could not be closed well: the stop is not a clean one.
func (h *Handle) Spoil() { h.f.spoiled.Store(true) }

// Forget drops all knowledge of the partition, when it is deleted.
func (h *Handle) Forget() {
	h.filed()
	h.note(kindForget, [6]int64{})
}

func (h *Handle) note(kind byte, v [6]int64) {
	if h.f.journal == nil {
		return
	}
	h.f.journal.note(kind, h.id, v)
	h.f.noted()
}

// SetLogStart records a new log start offset and returns when it is durable.
func (h *Handle) SetLogStart(offset int64) error {
	j := h.f.journal
	if j == nil {
		return nil
	}
	j.mu.Lock()
	number, err := j.append(kindStart, h.id, [6]int64{offset})
	j.mu.Unlock()
	if err == nil {
		err = j.wait(number)
	}
	if err != nil {
		return fmt.Errorf("flush: log start offset %d of %s: %w", offset, h.id, err)
	}
	return nil
}
