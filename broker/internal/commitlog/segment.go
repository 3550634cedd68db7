package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
)

// noTimestamp is the greatest timestamp of a segment in which no batch has one.
const noTimestamp = -1

// segment is one file of batches and its indexes.
//
// Its life: active (appended to), sealed (a newer one is active), finished (its index files are complete and durable), gone.
// Until it is finished its indexes are in memory, in mem, and what index files there are holds a beginning of them; after
// that look-ups read the files. Readers and the flush hold references; the last one to go closes the file and, if the segment
// was removed, deletes all its files, so that nobody loses what he reads.
type segment struct {
	*place
	base int64

	size atomic.Int64 // bytes of whole batches; only the appender raises it, after the write
	refs atomic.Int64 // one for the log's list and one for each user; 0 is closed for good
	gone atomic.Bool  // delete the files with the last reference

	// cold is how many bytes from the beginning this process has never looked at, and checked how many of them it has by now; see
	// verify. Set before the segment is published, but for checked.
	cold    int64
	coldEnd int64 // the first offset behind the cold bytes; 0 when nobody knows
	checked atomic.Pointer[checked]

	bad atomic.Pointer[[]*DamageError] // batches that the scrub found damaged, by position; nil for none

	open       sync.Mutex               // one opener or closer at a time
	rebuilding sync.Mutex               // one at a time builds the indexes again
	file       atomic.Pointer[vfs.File] // nil while nobody uses it
	used       atomic.Uint32            // the turn of the last use, see Files
	writes     atomic.Bool              // the file is opened for writing
	pinned     bool                     // the file stays open, see pin; under open

	mem     atomic.Pointer[memIndex]               // nil once finished
	sample  atomic.Pointer[sample]                 // of a finished segment's offset index, taken at the first use
	aborted atomic.Pointer[[]isolation.AbortedTxn] // of a finished segment, read at the first use
	// maxTime is the greatest timestamp; unknownTime means that the time index has to be asked.
	maxTime atomic.Int64
	// writtenMs is the broker's time of the last append, of an earlier process the file's; 0 when nobody knows.
	writtenMs atomic.Int64
	// headTime is the greatest timestamp of the first batch of a finished segment; unknownTime before anybody asked.
	headTime atomic.Int64
	buried   atomic.Bool // the files have deletedSuffix, and the log removes them

	// The appender's own, under the partition's lock.
	maxTimeOffset int64 // last offset of the batch that has maxTime
	firstTime     int64 // greatest timestamp of the first batch, noTimestamp without one
	createdMs     int64 // when it was begun or, once it has a batch, when the first was appended
	sinceIndex    int64 // bytes since the last index entry's batch began

	// The flush's own; only one runs at a time.
	syncedSize  int64      // as of the last sync of the log file
	carriedSize int64      // up to where an append journal has the file's bytes, 0 before any had
	carryName   string     // see Sync.File
	written     indexSizes // of the index files, complete entries that are in them already
}

// place is where a log's segments are; they share it.
type place struct {
	fs    vfs.FS
	dir   string
	files *Files
}

// indexSizes are the lengths of a segment's index files in bytes.
type indexSizes struct{ offsets, times, txns int64 }

const unknownTime = math.MinInt64

// checked is how far, from its beginning, a segment's cold part has been checked: a position and the offset that comes next.
type checked struct{ pos, next int64 }

func newSegment(at *place, base int64) *segment {
	s := &segment{place: at, base: base, firstTime: noTimestamp, maxTimeOffset: base}
	s.refs.Store(1)
	s.maxTime.Store(unknownTime)
	s.headTime.Store(unknownTime)
	return s
}

// fresh makes the segment's indexes those of an empty one.
func (s *segment) fresh() {
	s.mem.Store(new(memIndex))
	s.maxTime.Store(noTimestamp)
	s.maxTimeOffset, s.firstTime, s.sinceIndex = s.base, noTimestamp, 0
	s.written = indexSizes{}
}

func (s *segment) path(suffix string) string { return filepath.Join(s.dir, fileName(s.base, suffix)) }

// acquire takes a reference; false when the segment is closed for good.
func (s *segment) acquire() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a reference back. The last one closes the file and deletes what is to be deleted; an error then leaves files
// behind that the next opening of the log removes.
func (s *segment) release() error {
	if s.refs.Add(-1) > 0 {
		return nil
	}
	var err error
	if f := s.take(); f != nil {
		err = f.Close()
	}
	if s.gone.Load() && !s.buried.Load() {
		err = errors.Join(err, s.deleteFiles())
	}
	return err
}

// deleteFiles removes the log file last: an index without a log is a sign of damage.
func (s *segment) deleteFiles() error {
	for _, suffix := range allSuffixes {
		if err := s.fs.Remove(s.path(suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// handle returns the log file, opened at the first use, or again after [Log.Rest]. The caller has a reference, or the append lock of
// a segment that is in the list, and uses the file for no longer than that.
func (s *segment) handle() (vfs.File, error) {
	if turn := s.files.turn.Load(); s.used.Load() != turn {
		s.used.Store(turn)
	}
	return s.opened()
}

// opened is handle for a use that keeps no file open: a sync.
func (s *segment) opened() (vfs.File, error) {
	if f := s.file.Load(); f != nil {
		return *f, nil
	}
	s.open.Lock()
	defer s.open.Unlock()
	if f := s.file.Load(); f != nil {
		return *f, nil
	}
	open := s.openRead
	if s.writes.Load() {
		open = s.openWrite
	}
	f, err := open(logSuffix)
	if err != nil {
		return nil, err
	}
	s.put(f)
	return f, nil
}

// put makes an open file the segment's; it has none.
func (s *segment) put(f vfs.File) {
	s.file.Store(&f)
	s.used.Store(s.files.turn.Load())
	s.files.open.Add(1)
}

// take makes the file, if there is one, the caller's.
func (s *segment) take() vfs.File {
	f := s.file.Swap(nil)
	if f == nil {
		return nil
	}
	s.files.open.Add(-1)
	return *f
}

// rest takes the file of a segment that is in the list, unless it is in use. Users take their reference first and the file then,
// and here it is the other way round: whoever has got the file is seen. The append lock is held.
func (s *segment) rest() vfs.File {
	if !s.open.TryLock() {
		return nil
	}
	defer s.open.Unlock()
	f := s.file.Load()
	if f == nil || s.pinned {
		return nil
	}
	s.file.Store(nil)
	if s.refs.Load() != 1 { // the list's own
		s.file.Store(f)
		return nil
	}
	s.files.open.Add(-1)
	return *f
}

// pin keeps the log file open until unpin, whoever uses it. The caller has a reference.
func (s *segment) pin() error {
	s.open.Lock()
	s.pinned = true
	s.open.Unlock()
	_, err := s.handle()
	return err
}

func (s *segment) unpin() {
	s.open.Lock()
	s.pinned = false
	s.open.Unlock()
}

// openRead opens one of the segment's files, under the name that it has now: a reader may need it when it is on its way out.
func (s *segment) openRead(suffix string) (vfs.File, error) {
	f, err := s.fs.OpenRead(s.path(suffix))
	if errors.Is(err, fs.ErrNotExist) && s.buried.Load() {
		return s.fs.OpenRead(s.path(suffix) + deletedSuffix)
	}
	return f, err
}

// openWrite is openRead for the segment that is appended to, which is never on its way out.
func (s *segment) openWrite(suffix string) (vfs.File, error) { return s.fs.Open(s.path(suffix)) }

// readFile reads one of the segment's files whole, like openRead.
func (s *segment) readFile(suffix string) ([]byte, error) {
	data, err := vfs.ReadFile(s.fs, s.path(suffix))
	if errors.Is(err, fs.ErrNotExist) && s.buried.Load() {
		return vfs.ReadFile(s.fs, s.path(suffix)+deletedSuffix)
	}
	return data, err
}

// openForAppend opens the log file for writing, in place of a handle that can only read.
func (s *segment) openForAppend() error {
	f, err := s.fs.Open(s.path(logSuffix))
	if err != nil {
		return err
	}
	old := s.take()
	s.writes.Store(true)
	s.put(f)
	if old != nil {
		return old.Close()
	}
	return nil
}

// note takes a batch that starts at pos into the indexes, as Kafka does: an entry names the last offset of the batch and where
// the batch starts, and comes when more than interval bytes lie between its batch and the one of the entry before, so never at
// a segment's first batch. The appender's lock is held.
func (s *segment) note(b record.Batch, pos, interval int64) {
	last, ts := b.LastOffset(), b.MaxTimestamp()
	if pos == 0 {
		s.firstTime = max(ts, noTimestamp)
	}
	if ts > s.maxTime.Load() {
		s.maxTime.Store(ts)
		s.maxTimeOffset = last
	}
	if mem := s.mem.Load(); mem != nil && s.sinceIndex > interval {
		mem.offsets.add(offsetEntry{int32(last - s.base), int32(pos)})
		s.noteTime(mem)
		s.sinceIndex = 0
	}
	s.sinceIndex += int64(len(b))
}

// noteTime adds the greatest timestamp so far to the time index, unless it is there.
func (s *segment) noteTime(mem *memIndex) {
	ts, have := s.maxTime.Load(), mem.times.view()
	if ts <= noTimestamp || len(have) > 0 && have[len(have)-1].timestamp >= ts {
		return
	}
	mem.times.add(timeEntry{ts, int32(s.maxTimeOffset - s.base)})
}

// full tells whether an index has no room for another entry.
func (s *segment) full(indexBytes int64) bool {
	mem := s.mem.Load()
	return mem != nil && (int64(len(mem.offsets.view())) >= indexBytes/offsetEntrySize ||
		int64(len(mem.times.view())) >= indexBytes/timeEntrySize-1)
}

// load takes the indexes from their files up to a checkpoint's sizes; false when the files do not have that.
func (s *segment) load(cp flush.Checkpoint) bool {
	read := func(suffix string, size int64) []byte {
		if size == 0 {
			return nil
		}
		data, err := vfs.ReadFile(s.fs, s.path(suffix))
		if err != nil || int64(len(data)) < size {
			return []byte{0} // fits nothing
		}
		return data[:size]
	}
	offsets, ok1 := parseOffsets(read(indexSuffix, cp.Index), cp.Position)
	times, ok2 := parseTimes(read(timeSuffix, cp.TimeIndex))
	txns, err := s.readTxns(cp.TxnIndex)
	if !ok1 || !ok2 || err != nil {
		return false
	}
	s.fresh()
	mem := s.mem.Load()
	s.sinceIndex = cp.Position
	for _, e := range offsets {
		mem.offsets.add(e)
		s.sinceIndex = cp.Position - int64(e.position)
	}
	for _, e := range times {
		mem.times.add(e)
		s.maxTime.Store(e.timestamp)
		s.maxTimeOffset = s.base + int64(e.relative)
	}
	for _, a := range txns {
		mem.txns.add(a)
	}
	s.written = indexSizes{cp.Index, cp.TimeIndex, cp.TxnIndex}
	return true
}

// counts are the sizes of the index files once all that is in memory is written.
func (s *segment) counts() indexSizes {
	mem := s.mem.Load()
	return indexSizes{
		offsets: int64(len(mem.offsets.view())) * offsetEntrySize,
		times:   int64(len(mem.times.view())) * timeEntrySize,
		txns:    int64(len(mem.txns.view())) * isolation.EntrySize,
	}
}

// writeIndexes writes what the index files lack up to the given sizes, cuts them there, and syncs them. The transaction index
// exists only when it has entries. The flush calls it, one at a time.
func (s *segment) writeIndexes(upTo indexSizes) error {
	mem := s.mem.Load()
	var buf []byte
	for _, e := range mem.offsets.view()[s.written.offsets/offsetEntrySize : upTo.offsets/offsetEntrySize] {
		buf = appendOffsetEntry(buf, e)
	}
	if err := s.writeIndex(indexSuffix, buf, s.written.offsets, upTo.offsets); err != nil {
		return err
	}
	buf = buf[:0]
	for _, e := range mem.times.view()[s.written.times/timeEntrySize : upTo.times/timeEntrySize] {
		buf = appendTimeEntry(buf, e)
	}
	if err := s.writeIndex(timeSuffix, buf, s.written.times, upTo.times); err != nil {
		return err
	}
	buf = buf[:0]
	for _, a := range mem.txns.view()[s.written.txns/isolation.EntrySize : upTo.txns/isolation.EntrySize] {
		buf = isolation.AppendEntry(buf, a)
	}
	if upTo.txns > 0 {
		if err := s.writeIndex(txnSuffix, buf, s.written.txns, upTo.txns); err != nil {
			return err
		}
		if len(buf) > 0 {
			if err := s.writeTxnSum(mem.txns.view()[:upTo.txns/isolation.EntrySize]); err != nil {
				return err
			}
		}
	}
	s.written = upTo
	return nil
}

func (s *segment) writeIndex(suffix string, data []byte, at, size int64) error {
	open := s.fs.Open
	if at == 0 {
		open = s.fs.Create
	}
	f, err := open(s.path(suffix))
	if err != nil {
		return err
	}
	if len(data) > 0 {
		_, err = f.WriteAt(data, at)
	}
	if err == nil && at > 0 {
		err = f.Truncate(size)
	}
	if err == nil && size > 0 { // an empty file has only a name
		if serr := f.Sync(); serr != nil {
			err = &syncError{s.path(suffix), serr}
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// syncError is a failed fsync: the file may never be believed again.
type syncError struct {
	path string
	err  error
}

func (e *syncError) Error() string { return fmt.Sprintf("sync %s: %v", e.path, e.err) }
func (e *syncError) Unwrap() error { return e.err }
