package flush

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
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
	// CarryBytes is the size of an append journal. 0 is 16 MiB; negative begins none, so that every file is synced on its own.
	CarryBytes int64
	// Random is where the salts of the append journals come from; nil is the system's.
	Random io.Reader
	Clock  clock.Clock  // nil is the system's
	Logger *slog.Logger // nil discards
}

// Validate names the field that is out of its limits.
func (o Options) Validate() error {
	switch {
	case o.Parallel < 0 || o.Parallel > 1024:
		return fmt.Errorf("flush: Parallel is %d, must be between 0 and 1024", o.Parallel)
	case o.JournalSync < 0:
		return fmt.Errorf("flush: JournalSync is %v, must not be negative", o.JournalSync)
	case o.CarryBytes > 0 && o.CarryBytes < carryBytesMin:
		return fmt.Errorf("flush: CarryBytes is %d, must be at least %d, or negative", o.CarryBytes, carryBytesMin)
	case o.Dir != "" && o.FS == nil:
		return fmt.Errorf("flush: Dir is %q, but FS is nil", o.Dir)
	}
	return nil
}

// Target is what a Flusher flushes. Flush makes durable what the target held when it was called, and tells whoever waits
// for that; errors are the target's own to handle. It is never called twice at the same time for one handle.
type Target interface{ Flush() }

// Carrier is a target whose small appends an append journal may carry. What was said of Flush holds for Carry and Carried together.
type Carrier interface {
	Target
	// Carry plans a flush of what was appended since the last one. It gives the bytes, appended to buf, at most max of them;
	// none when everything is durable. When ok is false nothing is planned, and Flush will be called instead.
	Carry(buf []byte, max int) (p Piece, ok bool)
	// Carried ends what Carry has planned. With nil all of it is durable; with an error Flush will be called.
	Carried(err error)
	// Tell tells whoever waits. It comes after a Carried(nil), perhaps while the next Carry is under way.
	Tell()
}

// Flusher is a broker's group commit. Its workers are the only goroutines of the log; they start when there is work, up to
// Options.Parallel, and stay until Close.
type Flusher struct {
	o       Options
	journal *journal  // nil without one
	self    *Handle   // the journal as a target of its own
	carry   *carryLog // nil without append journals

	mu       sync.Mutex
	work     sync.Cond
	queue    queue // to be flushed on their own
	rounds   queue // to be carried together
	carrying bool  // a round is under way
	failing  bool  // append journals could not be used in the last round; the round's own
	workers  int
	idle     int
	closed   bool
	done     sync.WaitGroup
	driver   clock.Driver // takes the place of the workers, if not nil

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
	if o.CarryBytes == 0 {
		o.CarryBytes = 16 << 20
	}
	if o.Random == nil {
		o.Random = rand.Reader
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
		parallel := o.Parallel
		if f.driver != nil {
			parallel = 1
		}
		generation, err := redoCarried(j, parallel)
		if err != nil {
			return nil, errors.Join(err, j.file.Close())
		}
		f.journal = j
		if o.CarryBytes > 0 {
			f.carry = newCarryLog(o.FS, o.Dir, o.CarryBytes, o.Random, generation)
		}
	}
	f.self = f.Register(ID{}, journalTarget{f})
	return f, nil
}

// Clean tells whether the last user of the journal closed everything before it stopped, so that no partition can have lost what was
// not synced. False without a journal, and for a new one.
func (f *Flusher) Clean() bool { return f.journal != nil && f.journal.clean }

// Register makes a handle for a partition. It costs nothing while the partition is idle and needs no closing.
func (f *Flusher) Register(id ID, t Target) *Handle {
	h := &Handle{f: f, id: id, target: t}
	if f.carry != nil {
		h.carrier, _ = t.(Carrier)
	}
	return h
}

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
	var err error
	if f.carry != nil {
		err = f.carry.close()
	}
	if err = errors.Join(err, f.journal.close(err == nil && !f.spoiled.Load())); err != nil {
		return fmt.Errorf("flush: closing the journals: %w", err)
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
	if h.carrier != nil && !h.alone.Load() {
		f.rounds.push(h)
	} else {
		f.queue.push(h)
	}
	f.wake()
}

// wake sees to it that a worker comes for what may be done now. The caller holds mu.
func (f *Flusher) wake() {
	switch {
	case f.queue.head == nil && (f.carrying || f.rounds.head == nil):
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

// pop waits for work: the handles of a round, which is under way from then on, or one to be flushed on its own. Neither means that
// the flusher is closed and nothing is left.
func (f *Flusher) pop() (round, single *Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case !f.carrying && f.rounds.head != nil:
			f.carrying = true
			return f.rounds.take(), nil
		case f.queue.head != nil:
			return nil, f.queue.pop()
		case f.driver != nil:
			return nil, nil
		case f.closed:
			f.workers--
			return nil, nil
		}
		f.idle++
		f.work.Wait()
		f.idle--
	}
}

func (f *Flusher) worker() {
	defer f.done.Done()
	for f.step() {
	}
}

// step does the next piece of work; false when there is none.
func (f *Flusher) step() bool {
	round, h := f.pop()
	switch {
	case round != nil:
		f.round(round)
	case h != nil:
		h.alone.Store(false) // before: who asks for it from now on gets another one
		h.state.Store(running)
		h.target.Flush()
		f.rest(h)
	default:
		return false
	}
	return true
}

// rest lets a handle go whose flush is over, or queues it once more.
func (f *Flusher) rest(h *Handle) {
	if !h.state.CompareAndSwap(running, clean) {
		f.again(h)
	}
}

// again queues a handle whose flush did not happen, or that is dirty once more.
func (f *Flusher) again(h *Handle) {
	h.state.Store(queued)
	f.push(h)
}

// round makes the appends of many handles durable with one write and one sync. While those who waited are told, the next round may
// be under way.
func (f *Flusher) round(list *Handle) {
	r := rounds.Get().(*round)
	defer r.free()
	f.fill(r, list)
	var err error
	if len(r.entries) > 0 {
		err = f.carry.put(r.entries, r.by)
		f.tried(err)
	}
	for _, h := range r.in {
		h.carrier.Carried(err)
		if err != nil {
			h.alone.Store(true)
			f.again(h)
		} else {
			f.rest(h)
		}
	}
	f.mu.Lock()
	f.carrying = false
	f.wake()
	f.mu.Unlock()
	if err == nil {
		for _, h := range r.in {
			h.carrier.Tell()
		}
	}
}

// tried logs what has changed with the append journals.
func (f *Flusher) tried(err error) {
	switch {
	case err != nil && !f.failing:
		f.o.Logger.Warn("append journals can't be written, files are synced on their own", "dir", f.o.Dir, "err", err)
	case err == nil && f.failing:
		f.o.Logger.Info("append journals can be written again", "dir", f.o.Dir)
	}
	f.failing = err != nil
}

// fill collects the pieces of a round. A handle that is not in it is queued again, to be flushed on its own if it must.
func (f *Flusher) fill(r *round, list *Handle) {
	most := int(min(roundMax, f.carry.limit/4))
	ready, err := f.carry.ready(most + pieceMax(most))
	if err != nil {
		f.tried(err)
	}
	for h := list; h != nil; {
		next := h.next
		switch {
		case !ready || h.alone.Load():
			h.alone.Store(true)
			f.again(h)
		case len(r.entries) > most:
			f.again(h)
		default:
			h.state.Store(running)
			p, ok := h.carrier.Carry(r.data[:0], pieceMax(most)-carryEntryHead-maxFile)
			if !ok {
				h.alone.Store(true)
				f.again(h)
				break
			}
			r.add(h, p, f.carry.salt)
		}
		h = next
	}
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

// queue is handles in a row, linked through Handle.next.
type queue struct{ head, tail *Handle }

func (q *queue) push(h *Handle) {
	if h.next = nil; q.tail == nil {
		q.head = h
	} else {
		q.tail.next = h
	}
	q.tail = h
}

func (q *queue) pop() *Handle {
	h := q.head
	if q.head = h.next; q.head == nil {
		q.tail = nil
	}
	return h
}

// take empties the queue and gives its first handle, from which the others are reached.
func (q *queue) take() *Handle {
	h := q.head
	*q = queue{}
	return h
}

const (
	// roundMax is about how many bytes one round carries.
	roundMax = 1 << 20
	// carryBytesMin is the smallest append journal that carries something.
	carryBytesMin = 16 << 10
	// maxFile bounds the length of a piece's path.
	maxFile = 1 << 10
)

// pieceMax is how many bytes of a round one target may take. More than that is written once, to its own file.
func pieceMax(round int) int { return round/16 + carryEntryHead + maxFile }

// round is the buffers of one round.
type round struct {
	entries []byte
	data    []byte // of one piece
	in      []*Handle
	by      []filer // those of in that have a piece
}

var rounds = sync.Pool{New: func() any { return new(round) }}

// add takes a handle's piece in; one without bytes waits for nothing, and is told with the others.
func (r *round) add(h *Handle, p Piece, salt uint64) {
	r.in = append(r.in, h)
	if len(p.Data) == 0 {
		return
	}
	p.ID = h.id
	r.entries = appendPiece(r.entries, salt, p)
	r.by = append(r.by, h)
	r.data = p.Data
}

func (r *round) free() {
	clear(r.in)
	clear(r.by)
	r.entries, r.in, r.by = r.entries[:0], r.in[:0], r.by[:0]
	if cap(r.entries) <= 2*roundMax {
		rounds.Put(r)
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
	f       *Flusher
	id      ID
	target  Target
	carrier Carrier // the same, if append journals may carry it
	state   atomic.Int32
	alone   atomic.Bool // the next flush syncs the target's own files
	next    *Handle     // while queued; the flusher's mutex owns it
}

// file implements filer.
func (h *Handle) file() {
	h.alone.Store(true)
	h.Dirty()
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
