package partition

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/txn/isolation"
)

// Partition is one partition of a topic on this broker. All methods are safe for concurrent use.
type Partition struct {
	name   string
	keeps  bool // FS outlives the process, see Options.Durable
	clock  clock.Clock
	logger *slog.Logger
	handle *flush.Handle
	log    *commitlog.Log

	// cleaning is held by whoever removes records: Retain, Compact, Close and Delete. It is taken before the other two.
	cleaning sync.Mutex
	stopping atomic.Bool // Close or Delete waits for cleaning

	// flushing is held by the one flush that runs; it is taken before mu.
	flushing   sync.Mutex
	incomplete bool // the last flush was; under flushing
	// carrying is the flush that an append journal is to carry; it holds flushing. Under flushing too.
	carrying *commitlog.Sync
	carries  bool        // append journals may carry this partition
	told     atomic.Bool // watchers are to hear of a watermark that such a flush moved

	mu        sync.Mutex // the append lock; what follows is its own
	producers *producers
	tracker   isolation.Tracker
	guards    guards
	role      Role
	refusals  refusals
	durable   commitlog.Position // synced up to here
	alarm     clock.Timer        // asks for a sync when flush.ms is over; nil when none is due
	ended     *Error             // closed, deleted or failed: nothing is appended any more

	// Published for those who take no lock.
	view   atomic.Pointer[view]
	logEnd atomic.Int64
	synced atomic.Int64 // durable.Offset
	epoch  atomic.Int32
	failed atomic.Pointer[Error] // the same as ended
	// lastReadError is the last one that was logged.
	lastReadError atomic.Pointer[string]

	waiters  waiters // for the high watermark
	strict   waiters // for the sync too, see AwaitDurable
	watchers watchers
}

// view is the watermarks that readers go by, as one value.
type view struct {
	high   commitlog.Position
	stable int64
	// stableAt is the place of stable, found by the first reader who needs it.
	stableAt atomic.Pointer[commitlog.Position]
}

// Open opens the partition's log, or begins it, and recovers it. Everything in it is durable on return. An error that wraps
// [commitlog.ErrDamaged] means that durable data is missing or does not check; the folder is left as it is, and only this
// partition is out of service.
func Open(o Options) (*Partition, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Partition{
		keeps: o.Durable, name: fmt.Sprintf("%s-%d", o.Topic, o.Index), clock: o.Clock, logger: o.Logger,
		role: Leader{o.LeaderEpoch},
	}
	p.handle = o.Flusher.Register(flush.ID{Topic: o.TopicID, Partition: o.Index}, p)
	p.carries = p.handle.Carries(filepath.Dir(filepath.Clean(o.Dir)))
	now := p.nowMs()
	log, err := commitlog.Open(commitlog.Options{
		FS: o.FS, Dir: filepath.Clean(o.Dir), Name: p.name, TopicID: o.TopicID, Config: o.Log, Point: p.handle.Point(),
		NowMs: now, Logger: o.Logger, Files: o.Files,
		NewState: func() commitlog.State { return &producers{seenMs: now} },
	})
	if err != nil {
		return nil, err
	}
	p.log = log
	p.producers = log.State().(*producers) // made by NewState above
	log.AssignEpoch(o.LeaderEpoch)
	p.epoch.Store(o.LeaderEpoch)
	p.logEnd.Store(log.Next())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.durable = log.End()
	p.synced.Store(p.durable.Offset)
	p.view.Store(&view{})
	if _, err := p.advance(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Partition) nowMs() int64 { return p.clock.Now().UnixMilli() }

// Name is topic-partition.
func (p *Partition) Name() string { return p.name }

// Reconfigure takes new topic settings; they hold from the next append on. They must be valid. What was acknowledged under a more
// relaxed durability is synced soon, and what waits under a stricter one is acknowledged with that.
func (p *Partition) Reconfigure(c commitlog.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.log.Config().Durability
	p.log.Reconfigure(c)
	if c.Durability == before {
		return
	}
	p.calm()
	if p.durable.Offset < p.log.Next() {
		p.handle.Dirty()
	}
}

// Marks are the watermarks.
func (p *Partition) Marks() Marks {
	v := p.view.Load()
	return p.marks(v)
}

// marks completes a view. The log end is read after the view and the log start is never above it, so the order holds.
func (p *Partition) marks(v *view) Marks {
	start := min(p.log.LogStart(), v.high.Offset)
	return Marks{
		LogStart: start, LastStable: max(v.stable, start), HighWatermark: v.high.Offset, LogEnd: p.logEnd.Load(),
		LeaderEpoch: p.epoch.Load(),
	}
}

// advance publishes the watermarks for what the topic's durability lets be acknowledged; true when one moved. The append lock is held.
func (p *Partition) advance() (moved bool, err error) {
	old := p.view.Load()
	firm := p.firm()
	high := firm
	if offset := p.role.high(firm.Offset); offset < high.Offset {
		if high, err = p.log.Locate(max(offset, p.log.LogStart()), firm); err != nil {
			return false, err
		}
	}
	if high.Offset < old.high.Offset {
		high = old.high
	}
	first, any := p.producers.table.FirstOpen()
	stable := p.tracker.Stable(high.Offset, first, any)
	if high == old.high && stable == old.stable {
		return false, nil
	}
	p.view.Store(&view{high: high, stable: stable})
	return true, nil
}

// errorf makes an answer of this partition.
func (p *Partition) errorf(code int16, format string, args ...any) *Error {
	return &Error{Code: code, Reason: p.name + ": " + fmt.Sprintf(format, args...)}
}

// storage wraps an error of the file system.
func (p *Partition) storage(what string, err error) *Error {
	return &Error{Code: CodeKafkaStorageError, Reason: p.name + ": " + what, Offline: commitlog.Fatal(err), cause: err}
}
