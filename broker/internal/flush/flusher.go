package flush

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

// Options of a Flusher; the zero value works, without a journal.
type Options struct {
	// FS and Dir say where the recovery journal lives. With an empty Dir there is none, and a log that is opened again is
	// checked from its start and has lost what DeleteRecords did: for logs that end with the process.
	FS  vfs.FS
	Dir string
	// Parallel bounds how many targets are flushed at the same time. 0 is 16.
	Parallel int
	// JournalSync is how long a note may stay unsynced. 0 is one second.
	JournalSync time.Duration
	Clock       clock.Clock  // nil is the system's
	Logger      *slog.Logger // nil discards
}

// Validate names the field that is out of its limits.
func (o Options) Validate() error {
	switch {
	case o.Parallel < 0 || o.Parallel > 1024:
		return fmt.Errorf("flush: Parallel is %d, must be between 0 and 1024", o.Parallel)
	case o.JournalSync < 0:
		return fmt.Errorf("flush: JournalSync is %v, must not be negative", o.JournalSync)
	case o.Dir != "" && o.FS == nil:
		return fmt.Errorf("flush: Dir is %q, but FS is nil", o.Dir)
	}
	return nil
}

// Target is what a Flusher flushes. Flush makes durable what the target held when it was called, and tells whoever waits
// for that; errors are the target's own to handle. It is never called twice at the same time for one handle.
type Target interface{ Flush() }

// Flusher is a broker's group commit. Its workers are the only goroutines of the log; they start when there is work, up to
// Options.Parallel, and stay until Close.
type Flusher struct {
	o       Options
	journal *journal // nil without one
	self    *Handle  // the journal as a target of its own

	mu         sync.Mutex
	work       sync.Cond
	head, tail *Handle // the queue, linked through Handle.next
	workers    int
	idle       int
	closed     bool
	done       sync.WaitGroup
	driver     clock.Driver // takes the place of the workers, if not nil

	timer   atomic.Bool // a journal sync is due within JournalSync
	spoiled atomic.Bool // a partition could not be closed well
}

// New reads the journal, if there is one, and starts a flusher.
func New(o Options) (*Flusher, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Parallel == 0 {
		o.Parallel = 16
	}
	if o.JournalSync == 0 {
		o.JournalSync = time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Flusher{o: o, driver: clock.Driven(o.Clock)}
	f.work.L = &f.mu
	if o.Dir != "" {
		j, err := openJournal(o.FS, o.Dir, o.Logger)
		if err != nil {
			return nil, err
		}
		f.journal = j
	}
	f.self = f.Register(ID{}, journalTarget{f})
	return f, nil
}

// Clean tells whether the last user of the journal closed everything before it stopped, so that no partition can have lost what was
// not synced. False without a journal, and for a new one.
func (f *Flusher) Clean() bool { return f.journal != nil && f.journal.clean }

// Register makes a handle for a partition. It costs nothing while the partition is idle and needs no closing.
func (f *Flusher) Register(id ID, t Target) *Handle { return &Handle{f: f, id: id, target: t} }

// Close flushes what is dirty, syncs the journal and ends the workers. Handles marked dirty later are not flushed, so
// close the partitions first.
func (f *Flusher) Close() error {
	f.mu.Lock()
	f.closed = true
	f.work.Broadcast()
	f.mu.Unlock()
	f.done.Wait()
	for f.driver != nil && f.step() {
	}
	if f.journal == nil {
		return nil
	}
	if err := f.journal.close(!f.spoiled.Load()); err != nil {
		return fmt.Errorf("flush: recovery journal: %w", err)
	}
	return nil
}

// push puts a handle at the end of the queue and sees to it that a worker comes.
func (f *Flusher) push(h *Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed && f.workers == 0 && f.driver == nil {
		return
	}
	if h.next = nil; f.tail == nil {
		f.head = h
	} else {
		f.tail.next = h
	}
	f.tail = h
	switch {
	case f.driver != nil:
		f.driver.Go("flush", func() { f.step() })
	case f.idle > 0:
		f.work.Signal()
	case f.workers < f.o.Parallel:
		f.workers++
		f.done.Add(1)
		go f.worker()
	}
}

// pop waits for the next dirty handle; nil when the flusher is closed and nothing is left.
func (f *Flusher) pop() *Handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.head == nil {
		if f.driver != nil {
			return nil
		}
		if f.closed {
			f.workers--
			return nil
		}
		f.idle++
		f.work.Wait()
		f.idle--
	}
	h := f.head
	if f.head = h.next; f.head == nil {
		f.tail = nil
	}
	return h
}

func (f *Flusher) worker() {
	defer f.done.Done()
	for f.step() {
	}
}

// step flushes the next dirty handle; false when there is none.
func (f *Flusher) step() bool {
	h := f.pop()
	if h == nil {
		return false
	}
	h.state.Store(running)
	h.target.Flush()
	if !h.state.CompareAndSwap(running, clean) {
		h.state.Store(queued) // dirty again meanwhile
		f.push(h)
	}
	return true
}

// noted sees to it that the journal is synced in time.
func (f *Flusher) noted() {
	if f.timer.CompareAndSwap(false, true) {
		f.o.Clock.AfterFunc(f.o.JournalSync, f.self.Dirty)
	}
}

// journalTarget syncs the journal through the same queue as everything else.
type journalTarget struct{ f *Flusher }

func (t journalTarget) Flush() {
	t.f.timer.Store(false)
	if t.f.journal == nil {
		return
	}
	if err := t.f.journal.sync(); err != nil {
		t.f.o.Logger.Warn("the recovery journal can't be synced; a restart will check more of the logs", "dir", t.f.o.Dir, "err", err)
	}
}

// States of a handle.
const (
	clean   = iota
	queued  // in the queue
	running // a worker is at it
	again   // a worker is at it, and it is dirty once more
)

// Handle is a partition as the flusher sees it. All methods are safe for concurrent use.
type Handle struct {
	f      *Flusher
	id     ID
	target Target
	state  atomic.Int32
	next   *Handle // while queued; the flusher's mutex owns it
}

// Dirty says that the target holds something that is not durable. It is cheap: while the target waits for its flush
// already, one atomic load.
func (h *Handle) Dirty() {
	for {
		switch h.state.Load() {
		case queued, again:
			return
		case clean:
			if h.state.CompareAndSwap(clean, queued) {
				h.f.push(h)
				return
			}
		case running:
			if h.state.CompareAndSwap(running, again) {
				return
			}
		}
	}
}

// Point is what the journal knows of the partition. The zero Point is what it knows of a new one.
func (h *Handle) Point() Point {
	if h.f.journal == nil {
		return Point{}
	}
	return h.f.journal.point(h.id)
}

// NoteSynced records that every batch below offset is durable; call it after the sync.
func (h *Handle) NoteSynced(offset int64) { h.note(kindSynced, [6]int64{offset}) }

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
func (h *Handle) Forget() { h.note(kindForget, [6]int64{}) }

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
