package commitlog

import (
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
)

// Options say which log to open.
type Options struct {
	FS      vfs.FS
	Dir     string   // the partition's folder; made when missing
	Name    string   // topic-partition, for errors and log lines
	TopicID [16]byte // must be the folder's; zero takes any
	Config  Config
	Point   flush.Point // what the recovery journal knows
	NowMs   int64
	Logger  *slog.Logger // nil discards
	Files   *Files       // shared by all logs of a broker; nil closes no file that is not used
	// NewState makes an empty State, as often as one is needed.
	NewState func() State
	// CheckpointBytes is how much may be appended between two checkpoints, which is what a restart reads again. 0 is 16 MiB.
	CheckpointBytes int64
}

// State is what the log's owner derives from the batches: the producers. The log calls it to recover, and to save it in
// snapshots; whoever holds the append lock may change it.
type State interface {
	// Load replaces everything by a snapshot's content; an error means that the content is no use.
	Load(snapshot []byte) error
	// Replay takes in a batch that is in the log, in log order, and returns the transaction that it aborted, if it did.
	Replay(b record.Batch) (a isolation.AbortedTxn, aborted bool, err error)
	// Snapshot appends what Load reads.
	Snapshot(dst []byte) []byte
}

// Position is a place between two batches: the offset that comes next, and how many bytes of its segment lie before.
type Position struct{ Offset, Segment, Bytes int64 }

// ErrBroken says that a write failed and could not be taken back: what the file holds behind the last batch is unknown.
var ErrBroken = errors.New("a failed write could not be undone")

// origin is what a log keeps of its options. There may be ten thousand logs, so what only the opening needs is not kept.
type origin struct {
	Name            string
	TopicID         [16]byte
	NowMs           int64 // of the opening
	NewState        func() State
	CheckpointBytes int64
}

// Log is the log of one partition. The owner's append lock guards everything that changes it: methods that need it say so.
// All others are readers, and need no lock.
type Log struct {
	o      origin
	at     place
	logger *slog.Logger
	state  State
	config atomic.Pointer[Config]

	segments atomic.Pointer[[]*segment] // oldest first, never empty; the last is active
	epochs   epochs
	logStart atomic.Int64

	epochDirty atomic.Bool // the epochs have changed since they were written
	swaps      atomic.Int64
	rewritten  atomic.Int64 // see Progress
	progress   Progress
	repairing  sync.Mutex // guards repaired; see repairEpochs
	repaired   bool

	// Under the append lock.
	next       int64      // log end offset
	unfinished []*segment // sealed, index files not complete; oldest first
	dirDirty   bool       // names in the folder may not be durable
	parent     bool       // nor the folder's own
	metaDirty  bool       // partition.metadata is not
	checkpoint flush.Checkpoint
	sinceCheck int64 // bytes appended since the checkpoint
	starts     []start
	safe       int64      // the greatest base offset of a segment whose snapshot is durable
	doomed     []*segment // off the list, their files are still there
	swap       *swap      // a compacted segment on its way in; giveUp waits for it

	graves    graves
	snapshots []int64 // files that there are, ascending; the flush owns it
}

// start is a snapshot taken when a segment began, to be written once everything before it is durable.
type start struct {
	offset   int64
	snapshot []byte
}

// Sync is one flush of a log, in two steps. Data makes everything up to End durable. Indexes then completes the index files of
// sealed segments and, when it is time, makes a checkpoint. Only Begin and Done need the append lock, and only for a moment; one
// flush of a log runs at a time.
type Sync struct {
	l   *Log
	end Position // what Data makes durable

	logs      []*segment // with a reference: every file that holds unsynced bytes, oldest first
	dir       bool
	parent    bool
	meta      bool
	epochs    []byte // nil: unchanged
	finish    []*segment
	starts    []start
	check     bool
	active    *segment // for the checkpoint
	sizes     indexSizes
	snapshot  []byte
	made      flush.Checkpoint
	durable   bool // Data has succeeded
	completed bool // Indexes has, and made a checkpoint
}

// Piece is a finished segment as compaction sees it.
type Piece struct {
	Base, End int64 // the next segment begins at End
	Bytes     int64
	s         *segment
}

// Draft is a segment under way that is to take the place of consecutive pieces.
type Draft struct {
	l       *Log
	pieces  []Piece
	s       *segment
	file    vfs.File
	buf     []byte
	at      int64 // of buf in the file
	changed bool
}

// swap is a replacement that is under way. Who holds the draft (one at a time) owns it; Log.swap is under the append lock.
type swap struct {
	draft *Draft
	done  bool // the files are in place
}

func (l *Log) list() []*segment { return *l.segments.Load() }

func (l *Log) active() *segment { list := l.list(); return list[len(list)-1] }

// State is the owner's state as of the last batch. The append lock guards it.
func (l *Log) State() State { return l.state }

// Next is the log end offset. The append lock is held.
func (l *Log) Next() int64 { return l.next }

// End is the place behind the last batch. The append lock is held.
func (l *Log) End() Position {
	s := l.active()
	return Position{l.next, s.base, s.size.Load()}
}

// Sealed tells whether segments wait for a flush to complete them: until then their indexes take memory. The append lock is held.
func (l *Log) Sealed() bool { return len(l.unfinished)+len(l.starts) > 0 }

// LogStart is the first offset that readers may see.
func (l *Log) LogStart() int64 { return l.logStart.Load() }

// Config is the settings as they are now, defaults filled in; nobody changes what it points to.
func (l *Log) Config() *Config { return l.config.Load() }

// Reconfigure takes new settings; they hold from the next append on. The append lock is held.
func (l *Log) Reconfigure(c Config) {
	l.config.Store(l.at.files.share(c.WithDefaults()))
}

// Append writes one batch behind the last one, with one write. The batch has its final bytes and its base offset is Next. On
// an error nothing has been appended, and the same may be tried again, unless the error is [ErrBroken]. The append lock is
// held.
func (l *Log) Append(b record.Batch, nowMs int64) error {
	s := l.active()
	if l.mustRoll(s, b, nowMs) {
		if err := l.roll(nowMs); err != nil {
			return fmt.Errorf("%s: new segment at offset %d: %w", l.o.Name, l.next, err)
		}
		s = l.active()
	}
	file, err := s.handle()
	if err != nil {
		return fmt.Errorf("%s: %w", l.o.Name, err)
	}
	pos := s.size.Load()
	if _, err := file.WriteAt(b, pos); err != nil {
		if terr := file.Truncate(pos); terr != nil {
			return fmt.Errorf("%s: %w: %w, after: %w", l.o.Name, ErrBroken, terr, err)
		}
		return fmt.Errorf("%s: append at offset %d: %w", l.o.Name, l.next, err)
	}
	if l.epochs.assign(b.LeaderEpoch(), b.BaseOffset()) {
		l.epochDirty.Store(true)
	}
	s.note(b, pos, l.Config().IndexIntervalBytes)
	if pos == 0 {
		s.createdMs = nowMs
	}
	s.writtenMs.Store(nowMs)
	s.size.Store(pos + int64(len(b)))
	l.next = b.LastOffset() + 1
	l.sinceCheck += int64(len(b))
	return nil
}

// AddAborted puts a transaction into the index of the active segment, which holds its abort marker. The append lock is held.
func (l *Log) AddAborted(a isolation.AbortedTxn) { l.active().mem.Load().txns.add(a) }

// AssignEpoch notes that this broker's batches of a leader epoch begin at the log's end. The append lock is held.
func (l *Log) AssignEpoch(epoch int32) {
	if l.epochs.assign(epoch, l.next) {
		l.epochDirty.Store(true)
	}
}

// EpochEnd answers OffsetForLeaderEpoch, given the offset at which the latest epoch ends for now.
func (l *Log) EpochEnd(epoch int32, logEnd int64) (found int32, end int64) {
	return l.epochs.end(epoch, logEnd)
}

// EpochAt is the leader epoch of an offset, -1 when unknown.
func (l *Log) EpochAt(offset int64) int32 { return l.epochs.at(offset) }

// mustRoll tells whether the batch belongs into a new segment. As in Kafka the segment's age is counted from its first batch's
// timestamp to this one's, so that records of the past, loaded today, lie in segments of their own time; without timestamps it
// is counted by the clock.
func (l *Log) mustRoll(s *segment, b record.Batch, nowMs int64) bool {
	size := s.size.Load()
	if size == 0 {
		return false
	}
	age := nowMs - s.createdMs
	if ts := b.MaxTimestamp(); s.firstTime > noTimestamp && ts > noTimestamp {
		age = ts - s.firstTime
	}
	c := l.Config()
	return size > c.SegmentBytes-int64(len(b)) || l.tooOld(s, age) ||
		b.LastOffset()-s.base > math.MaxInt32 || s.full(c.IndexBytes)
}

// tooOld tells whether a segment of that age is to be closed. The jitter is drawn from the log's name and the segment's first offset:
// a restart does not draw again.
func (l *Log) tooOld(s *segment, ageMs int64) bool {
	c := l.Config()
	jitter := min(c.SegmentJitterMs, c.SegmentMs)
	if jitter == 0 || ageMs <= c.SegmentMs-jitter {
		return ageMs > c.SegmentMs
	}
	h := fnv.New64a()
	if _, err := fmt.Fprint(h, l.o.Name, s.base); err != nil {
		panic(err) // a hash takes everything
	}
	return ageMs > c.SegmentMs-int64(h.Sum64()%uint64(jitter))
}

// roll seals the active segment and begins a new one at the log's end. All that it does to the disk is to create one empty
// file; the rest is the next flush's, which syncs the sealed segment and completes its index files before anything that
// depends on them. On an error nothing has changed. The append lock is held.
func (l *Log) roll(nowMs int64) error {
	if err := l.begin(l.next, nowMs); err != nil {
		return err
	}
	old := l.list()
	sealed := old[len(old)-2]
	sealed.noteTime(sealed.mem.Load())
	sealed.writes.Store(false) // once its file was closed it is only read
	l.unfinished = append(l.unfinished, sealed)
	l.starts = append(l.starts, start{l.next, l.state.Snapshot(nil)})
	return nil
}

// begin creates a segment and puts it at the end of the list. A file of that name can only be an empty one, left by a crash
// right here: recovery keeps no other.
func (l *Log) begin(base, nowMs int64) error {
	path := filepath.Join(l.at.dir, fileName(base, logSuffix))
	f, err := l.at.fs.Create(path)
	if err != nil {
		return err
	}
	s := newSegment(&l.at, base)
	s.writes.Store(true)
	s.put(f)
	s.fresh()
	s.createdMs = nowMs
	s.writtenMs.Store(nowMs)
	l.dirDirty = true
	var list []*segment
	if p := l.segments.Load(); p != nil {
		list = slices.Clip(*p)
	}
	list = append(list, s)
	l.segments.Store(&list)
	return nil
}

// find is the index of the segment that an offset belongs to: the last one that does not begin behind it.
func find(list []*segment, offset int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].base > offset }) - 1
}
