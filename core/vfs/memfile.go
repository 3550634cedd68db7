package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync"
)

// pageSize is the unit in which a memory file grows: a large file is never copied to become larger.
const pageSize = 64 << 10

// sector is the unit in which a crash keeps or loses unsynced bytes.
const sector = 512

// memFile is the content of one memory file, which several names and handles may lead to.
//
// Beside the live bytes it knows what a crash could bring back: the length at the last Sync, and for every byte below it
// that was overwritten or cut off since then, what stood there (undo, oldest first). Appends, nearly all that a log does,
// need no undo.
type memFile struct {
	mu     sync.RWMutex
	pages  [][]byte // all of pageSize but the last, which may be shorter
	size   int64
	synced int64
	undo   []undo
	// ghosts are what stood where bytes were written whose sync failed: as the kernel may believe them written, no later sync makes
	// them durable. Writing there again does.
	ghosts []undo
}

// undo is what stood at off before a write.
type undo struct {
	off int64
	old []byte
}

// grow makes room for size bytes; new bytes are zero. The caller holds mu.
func (m *memFile) grow(size int64) {
	for int64(len(m.pages))*pageSize < size {
		if n := len(m.pages); n > 0 && len(m.pages[n-1]) < pageSize {
			m.pages[n-1] = append(make([]byte, 0, pageSize), m.pages[n-1]...)[:pageSize]
		}
		want := size - int64(len(m.pages))*pageSize
		if want >= pageSize || len(m.pages) > 0 {
			m.pages = append(m.pages, make([]byte, pageSize))
			continue
		}
		// The first page starts small and doubles: most files of a broker with many partitions stay below one page.
		m.pages = append(m.pages, make([]byte, max(want, 512)))
		return
	}
	n := len(m.pages)
	if n == 0 {
		return
	}
	if have := int64(n-1)*pageSize + int64(len(m.pages[n-1])); have < size {
		want := min(max(size-int64(n-1)*pageSize, 2*int64(len(m.pages[n-1]))), pageSize)
		m.pages[n-1] = append(make([]byte, 0, want), m.pages[n-1]...)[:want]
	}
}

// each calls f with the pieces of pages that cover n bytes from off. The caller holds mu and has grown the file.
func (m *memFile) each(off int64, n int, f func(piece []byte)) {
	for n > 0 {
		page := m.pages[off/pageSize]
		from := int(off % pageSize)
		to := min(from+n, len(page))
		f(page[from:to])
		off += int64(to - from)
		n -= to - from
	}
}

// read copies what lies at off into p, up to the end of the file. The caller holds mu.
func (m *memFile) read(p []byte, off int64) int {
	n := int(min(int64(len(p)), m.size-off))
	if n <= 0 {
		return 0
	}
	at := 0
	m.each(off, n, func(piece []byte) { at += copy(p[at:], piece) })
	return n
}

// save keeps what a crash may bring back of the n bytes at off. The caller holds mu.
func (m *memFile) save(off, n int64) {
	n = min(n, min(m.synced, m.size)-off)
	if n <= 0 {
		return
	}
	old := make([]byte, n)
	m.read(old, off)
	m.undo = append(m.undo, undo{off, old})
}

func (m *memFile) writeAt(p []byte, off int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.save(off, int64(len(p)))
	end := off + int64(len(p))
	m.exorcise(off, end)
	m.grow(end)
	at := 0
	m.each(off, len(p), func(piece []byte) { at += copy(piece, p[at:]) })
	m.size = max(m.size, end)
}

func (m *memFile) truncate(size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if size >= m.size {
		m.grow(size)
		m.size = size
		return
	}
	m.save(size, m.size-size)
	cut := m.size - size
	for at := size; cut > 0; { // what grows back later must read as zeros
		n := min(cut, pageSize)
		m.each(at, int(n), func(piece []byte) { clear(piece) })
		at, cut = at+n, cut-n
	}
	keep := (size + pageSize - 1) / pageSize
	clear(m.pages[keep:])
	m.pages = m.pages[:keep]
	m.size = size
}

func (m *memFile) sync() {
	m.mu.Lock()
	m.synced, m.undo = m.size, nil
	for _, g := range m.ghosts {
		if g.off < m.size {
			m.undo = append(m.undo, undo{g.off, g.old[:min(int64(len(g.old)), m.size-g.off)]})
		}
	}
	m.mu.Unlock()
}

// forget is a sync that failed: the unsynced bytes count as written for the system, and are not on the disk.
func (m *memFile) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ghosts = append(m.ghosts, m.undo...)
	if m.size > m.synced {
		m.ghosts = append(m.ghosts, undo{m.synced, make([]byte, m.size-m.synced)})
	}
}

// exorcise takes what is written again out of the ghosts. The caller holds mu.
func (m *memFile) exorcise(from, to int64) {
	var left []undo
	for _, g := range m.ghosts {
		end := g.off + int64(len(g.old))
		if from >= end || to <= g.off {
			left = append(left, g)
			continue
		}
		if g.off < from {
			left = append(left, undo{g.off, g.old[:from-g.off]})
		}
		if to < end {
			left = append(left, undo{to, g.old[to-g.off:]})
		}
	}
	m.ghosts = left
}

func (m *memFile) length() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.size
}

// crash is what a disk may hold of the file after the power went: everything synced, and a share of the rest that rng
// chooses, so that across many seeds come up: nothing of it, all of it, a prefix that ends at any byte, and any mix of
// sectors with zeros in the holes.
func (m *memFile) crash(rng *rand.Rand) *memFile {
	m.mu.RLock()
	defer m.mu.RUnlock()
	live := make([]byte, m.size)
	m.read(live, 0)
	old := make([]byte, max(m.synced, m.size))
	copy(old, live)
	for i := len(m.undo) - 1; i >= 0; i-- {
		copy(old[m.undo[i].off:], m.undo[i].old)
	}
	old = old[:m.synced]
	return newMemFile(mix(rng, old, live))
}

// clone is a copy of the live bytes, all of which count as synced in it.
func (m *memFile) clone() *memFile {
	m.mu.RLock()
	defer m.mu.RUnlock()
	live := make([]byte, m.size)
	m.read(live, 0)
	return newMemFile(live)
}

func newMemFile(content []byte) *memFile {
	m := &memFile{size: int64(len(content)), synced: int64(len(content))}
	m.grow(m.size)
	at := 0
	m.each(0, len(content), func(piece []byte) { at += copy(piece, content[at:]) })
	return m
}

// mix chooses what survives between the old content and the live one.
func mix(rng *rand.Rand, old, live []byte) []byte {
	switch rng.IntN(5) {
	case 0:
		return old
	case 1:
		return live
	case 2: // the live bytes up to some place, the old ones behind it
		longer := max(len(old), len(live))
		same := 0
		for same < min(len(old), len(live)) && old[same] == live[same] {
			same++
		}
		cut := same + rng.IntN(longer-same+1)
		out := append([]byte(nil), live[:min(cut, len(live))]...)
		if cut < len(old) {
			out = append(append(out, make([]byte, max(0, cut-len(out)))...), old[cut:]...)
		}
		return out
	default: // each sector old or live, the length anything between
		low, high := min(len(old), len(live)), max(len(old), len(live))
		out := make([]byte, low+rng.IntN(high-low+1))
		for at := 0; at < len(out); at += sector {
			from := old
			if rng.IntN(2) == 0 {
				from = live
			}
			if at < len(from) {
				copy(out[at:min(at+sector, len(out))], from[at:])
			}
		}
		return out
	}
}

// memHandle is one open memory file.
type memHandle struct {
	file     *memFile
	path     string
	readOnly bool
	mu       sync.RWMutex // held for reading while an operation runs, so that Close waits for it
	closed   bool
}

func (h *memHandle) enter(op string, writes bool) error {
	h.mu.RLock()
	if h.closed {
		h.mu.RUnlock()
		return &fs.PathError{Op: op, Path: h.path, Err: fs.ErrClosed}
	}
	if writes && h.readOnly {
		h.mu.RUnlock()
		return &fs.PathError{Op: op, Path: h.path, Err: fs.ErrPermission}
	}
	return nil
}

func (h *memHandle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.enter("read", false); err != nil {
		return 0, err
	}
	defer h.mu.RUnlock()
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: h.path, Err: fmt.Errorf("%w: negative offset", fs.ErrInvalid)}
	}
	h.file.mu.RLock()
	n := h.file.read(p, off)
	h.file.mu.RUnlock()
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *memHandle) WriteAt(p []byte, off int64) (int, error) {
	if err := h.enter("write", true); err != nil {
		return 0, err
	}
	defer h.mu.RUnlock()
	if off < 0 {
		return 0, &fs.PathError{Op: "write", Path: h.path, Err: fmt.Errorf("%w: negative offset", fs.ErrInvalid)}
	}
	h.file.writeAt(p, off)
	return len(p), nil
}

func (h *memHandle) Truncate(size int64) error {
	if err := h.enter("truncate", true); err != nil {
		return err
	}
	defer h.mu.RUnlock()
	if size < 0 {
		return &fs.PathError{Op: "truncate", Path: h.path, Err: fs.ErrInvalid}
	}
	h.file.truncate(size)
	return nil
}

func (h *memHandle) Sync() error {
	if err := h.enter("sync", false); err != nil {
		return err
	}
	defer h.mu.RUnlock()
	h.file.sync()
	return nil
}

// syncFailed is what [Faults] tells of a sync that it let fail.
func (h *memHandle) syncFailed() { h.file.forget() }

func (h *memHandle) Size() (int64, error) {
	if err := h.enter("stat", false); err != nil {
		return 0, err
	}
	defer h.mu.RUnlock()
	return h.file.length(), nil
}

func (h *memHandle) Fd() (uintptr, bool) { return 0, false }

func (h *memHandle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return &fs.PathError{Op: "close", Path: h.path, Err: fs.ErrClosed}
	}
	h.closed = true
	return nil
}
