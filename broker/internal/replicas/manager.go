package replicas

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

var (
	// ErrUnknownTopic says that no topic of that name or id exists here.
	ErrUnknownTopic = errors.New("no such topic")
	// ErrUnknownPartition says that the topic has fewer partitions.
	ErrUnknownPartition = errors.New("no such partition")
	// ErrOffline says that the partition exists but its log could not be opened.
	ErrOffline = errors.New("partition is offline")
)

// Options of a Manager. All fields are needed.
type Options struct {
	FS      vfs.FS
	Dir     string // the data folder
	Flusher *flush.Flusher
	Files   *commitlog.Files // nil keeps files open that are not used
	Clock   clock.Clock
	Logger  *slog.Logger
	Durable bool
	// Static is what the broker was started with, for topics that do not say.
	Static metadata.Static
}

// Topic is the partitions of one topic on this node. It is immutable.
type Topic struct {
	Name     string
	ID       metadata.ID
	Internal bool
	// Codec is what batches are stored in; nil keeps each as its producer sent it.
	Codec *record.Codec
	// Level is how hard the codec tries, see record.BuilderOptions.
	Level int
	// MaxMessageBytes bounds a batch as it was sent.
	MaxMessageBytes int
	// MinInSync is how many replicas acks=all asks for; this node is one.
	MinInSync int64
	config    commitlog.Config
	replicas  []*replica
}

// Partition returns one partition. The error wraps ErrUnknownPartition or
// ErrOffline. Asking for a partition that is offline for want of room (on the disk, of
// file descriptors) makes the manager try to open it again, in the background.
func (t *Topic) Partition(i int32) (*partition.Partition, error) {
	if i < 0 || int(i) >= len(t.replicas) {
		return nil, fmt.Errorf("topic %s has %d partitions, asked for %d: %w", t.Name, len(t.replicas), i, ErrUnknownPartition)
	}
	return t.replicas[i].get()
}

// Len is the number of partitions.
func (t *Topic) Len() int32 { return int32(len(t.replicas)) }

// table is what lookups read.
type table struct {
	byName map[string]*Topic
	byID   map[metadata.ID]*Topic
}

// Manager owns the partitions of this node. Prepare, Retire and Close are called
// by one goroutine (the metadata publisher, then whoever closes the broker);
// lookups by any. Lookups of a partition that is offline for want of room start
// another that tries to open it.
type Manager struct {
	o     Options
	table atomic.Pointer[table] // changed under mu
	// deleted is told of every topic that is gone, after its partitions are closed.
	deleted func(name string, id metadata.ID)

	mu     sync.Mutex      // held by whoever opens or closes partitions
	image  *metadata.Image // of the last Prepare
	closed bool
}

// New returns a manager without partitions.
func New(o Options) *Manager {
	m := &Manager{o: o, deleted: func(string, metadata.ID) {}}
	m.table.Store(&table{byName: map[string]*Topic{}, byID: map[metadata.ID]*Topic{}})
	return m
}

// OnDelete sets the function that is told of every deleted topic. It must be
// called before the first image with a deletion is published.
func (m *Manager) OnDelete(fn func(name string, id metadata.ID)) { m.deleted = fn }

// Topic returns the topic of that name, nil if there is none. The argument is
// bytes because the hot path has the name in a frame; the lookup does not
// allocate.
func (m *Manager) Topic(name []byte) *Topic { return m.table.Load().byName[string(name)] }

// TopicByID returns the topic of that id, nil if there is none.
func (m *Manager) TopicByID(id metadata.ID) *Topic { return m.table.Load().byID[id] }

// All gives the partitions that are open, by topic name.
func (m *Manager) All() iter.Seq[*partition.Partition] {
	return func(yield func(*partition.Partition) bool) {
		t := m.table.Load()
		for _, name := range slices.Sorted(maps.Keys(t.byName)) {
			for _, r := range t.byName[name].replicas {
				if p := r.open(); p != nil && !yield(p) {
					return
				}
			}
		}
	}
}

// Get returns a partition by topic name.
func (m *Manager) Get(topic string, i int32) (*partition.Partition, error) {
	t := m.table.Load().byName[topic]
	if t == nil {
		return nil, fmt.Errorf("topic %q: %w", topic, ErrUnknownTopic)
	}
	return t.Partition(i)
}

// GetByID returns a partition by topic id.
func (m *Manager) GetByID(id metadata.ID, i int32) (*partition.Partition, error) {
	t := m.TopicByID(id)
	if t == nil {
		return nil, fmt.Errorf("topic id %x: %w", id, ErrUnknownTopic)
	}
	return t.Partition(i)
}

// Prepare opens the partitions that next has and this node has not, and gives
// changed configurations to those it has. A partition that can not be opened is
// offline, and the others work. Where there was no room it is opened when somebody
// asks for it and there is room again, so its topic is not said to have failed;
// else it stays offline until the broker starts anew, and the error names the first
// such one.
func (m *Manager) Prepare(next *metadata.Image) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.image
	m.image = next
	old := m.table.Load()
	out := &table{
		byName: make(map[string]*Topic, len(next.Names())),
		byID:   make(map[metadata.ID]*Topic, len(next.Names())),
	}
	var todo []opening
	again := m.reopen // one for all
	for _, name := range next.Names() {
		mt := next.Topic(name)
		o := old.byID[mt.ID]
		if o != nil && m.same(mt, before, next) {
			out.byName[name], out.byID[mt.ID] = o, o
			continue
		}
		t := m.topic(mt, next)
		have := 0
		if o != nil {
			have = copy(t.replicas, o.replicas)
			m.follow(t, o, mt)
		}
		for i := have; i < len(t.replicas); i++ {
			t.replicas[i] = &replica{again: again, topic: mt.ID, index: int32(i)}
			todo = append(todo, opening{t, int32(i), mt.Partitions[i].LeaderEpoch, t.config})
		}
		out.byName[name], out.byID[mt.ID] = t, t
	}
	// Topics that next has no more stay until Retire: their clients are still
	// being served from the old image.
	for id, t := range old.byID {
		if next.TopicByID(id) == nil {
			out.byID[id] = t
			if out.byName[t.Name] == nil {
				out.byName[t.Name] = t
			}
		}
	}
	err := m.openAll(todo, next)
	m.table.Store(out)
	return err
}

// Retire deletes the partitions of topics that prev has and next has not.
func (m *Manager) Retire(prev, next *metadata.Image) {
	for _, t := range m.retire(next) {
		m.deleted(t.Name, t.ID)
	}
}

func (m *Manager) retire(next *metadata.Image) (gone []*Topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.table.Load()
	out := &table{byName: make(map[string]*Topic, len(old.byName)), byID: make(map[metadata.ID]*Topic, len(old.byID))}
	for id, t := range old.byID {
		if next.TopicByID(id) == nil {
			gone = append(gone, t)
			continue
		}
		out.byID[id], out.byName[t.Name] = t, t
	}
	if len(gone) == 0 {
		return nil
	}
	m.table.Store(out)
	slices.SortFunc(gone, func(a, b *Topic) int { return strings.Compare(a.Name, b.Name) })
	var open []*partition.Partition
	for _, t := range gone {
		for _, r := range t.replicas {
			if p := r.open(); p != nil {
				open = append(open, p)
			}
		}
	}
	inParallel(m.o.Clock, open, func(p *partition.Partition) {
		if err := p.Delete(); err != nil {
			m.o.Logger.Error("deleting a partition failed; its folder is removed at the next start",
				"partition", p.Name(), "error", err)
		}
	})
	return gone
}

// Close closes all partitions, those that fail included, and returns all errors.
// Lookups find them still; what is asked of them then fails as of a closed partition.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	var (
		open []*partition.Partition
		mu   sync.Mutex // guards errs
		errs []error
	)
	for p := range m.All() {
		open = append(open, p)
	}
	inParallel(m.o.Clock, open, func(p *partition.Partition) {
		if err := p.Close(); err != nil {
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		}
	})
	return errors.Join(errs...)
}

// opening is one partition to open.
type opening struct {
	t      *Topic
	index  int32
	epoch  int32
	config commitlog.Config
}
