package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options of a machine. ProducerIDs must be set.
type Options struct {
	// ProducerIDs gives an id that was never given before. An error makes the
	// request answer COORDINATOR_LOAD_IN_PROGRESS, on which clients try again.
	ProducerIDs func() (int64, error)
	// MaxTimeout bounds the transaction timeout that clients may ask for. 0 is 15
	// minutes, as in Kafka.
	MaxTimeout time.Duration
	// Expiration is how long after its last change an id at rest is forgotten. 0 is 7
	// days, as in Kafka.
	Expiration time.Duration
	// TwoPhase lets clients take part in two-phase commits, with transactions that have
	// no timeout (KIP-939).
	TwoPhase bool
	// NoticeAfter is how long a transaction without a timeout is open until Tick tells of
	// it, and how long until it tells again. 0 is 15 minutes.
	NoticeAfter time.Duration
	// SweepInterval is how far apart the times are at which ids are forgotten. 0 is an
	// hour, as in Kafka.
	SweepInterval time.Duration
}

// Validate names the field that is wrong.
func (o Options) Validate() error {
	if o.ProducerIDs == nil {
		return fmt.Errorf("coordinator options: ProducerIDs is not set")
	}
	if o.MaxTimeout < 0 {
		return fmt.Errorf("coordinator options: MaxTimeout is %v, the least is 0", o.MaxTimeout)
	}
	if o.NoticeAfter != 0 && o.NoticeAfter < time.Millisecond {
		return fmt.Errorf("coordinator options: NoticeAfter is %v, the least is 1ms", o.NoticeAfter)
	}
	if o.Expiration != 0 && o.Expiration < time.Millisecond {
		return fmt.Errorf("coordinator options: Expiration is %v, the least is 1ms", o.Expiration)
	}
	if o.SweepInterval != 0 && o.SweepInterval < time.Millisecond {
		return fmt.Errorf("coordinator options: SweepInterval is %v, the least is 1ms", o.SweepInterval)
	}
	return nil
}

const (
	defaultMaxTimeout    = 15 * time.Minute
	defaultNoticeAfter   = 15 * time.Minute
	defaultExpiration    = 7 * 24 * time.Hour
	defaultSweepInterval = time.Hour
)

// Machine holds the transactional ids of one partition. See the package comment.
type Machine struct {
	ids          map[string]*transaction
	deadlines    deadlines
	producerIDs  func() (int64, error)
	maxTimeoutMs int64
	expirationMs int64
	sweepMs      int64
	twoPhase     bool
	noticeMs     int64
	// undecided holds the ids with an open transaction that has no timeout.
	undecided map[string]*transaction
	// resumable holds the ids, in the order of their completion, that have parked
	// requests which can go on.
	resumable []string
}

// New makes an empty machine.
func New(o Options) (*Machine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.MaxTimeout == 0 {
		o.MaxTimeout = defaultMaxTimeout
	}
	if o.Expiration == 0 {
		o.Expiration = defaultExpiration
	}
	if o.SweepInterval == 0 {
		o.SweepInterval = defaultSweepInterval
	}
	if o.NoticeAfter == 0 {
		o.NoticeAfter = defaultNoticeAfter
	}
	return &Machine{
		ids:          map[string]*transaction{},
		undecided:    map[string]*transaction{},
		twoPhase:     o.TwoPhase,
		noticeMs:     o.NoticeAfter.Milliseconds(),
		producerIDs:  o.ProducerIDs,
		maxTimeoutMs: o.MaxTimeout.Milliseconds(),
		expirationMs: o.Expiration.Milliseconds(),
		sweepMs:      o.SweepInterval.Milliseconds(),
	}, nil
}

// Replay takes one record of the log. It is the only method that changes what the
// log holds. Records of a type it does not know are passed over; an error is a
// record that can not be read.
func (m *Machine) Replay(key, value []byte) error {
	id, ok, err := decodeKey(key)
	if err != nil || !ok {
		return err
	}
	if value == nil {
		m.forget(id)
		return nil
	}
	md, err := decodeValue(value)
	if err != nil {
		return fmt.Errorf("transactional id %q: %w", id, err)
	}
	if md.state == Dead {
		m.forget(id)
		return nil
	}
	t := m.ids[id]
	if t == nil {
		t = &transaction{id: id, place: none}
		m.ids[id] = t
	}
	if t.state.deciding() && !md.state.deciding() && len(t.parked) > 0 {
		m.resumable = append(m.resumable, id)
	}
	t.metadata = md
	m.track(t)
	m.schedule(t)
	return nil
}

func (m *Machine) forget(id string) {
	t := m.ids[id]
	if t == nil {
		return
	}
	delete(m.undecided, id)
	if len(t.parked) > 0 { // they are answered that the id is unknown
		m.resumable = append(m.resumable, id)
		t.metadata = metadata{state: Dead}
		m.schedule(t)
		return
	}
	m.deadlines.set(t, 0, false)
	delete(m.ids, id)
}

// get returns the transaction of an id, nil if the log holds none.
func (m *Machine) get(id string) *transaction {
	if t := m.ids[id]; t != nil && t.state != Dead {
		return t
	}
	return nil
}

// Loaded is called once, after the whole log was replayed: the decisions that were
// not carried out to the end are carried out again.
func (m *Machine) Loaded() Output {
	var out Output
	for _, id := range m.sorted() {
		if t := m.ids[id]; t.state.deciding() {
			out.Decisions = append(out.Decisions, decide(id, t.metadata, Reply{}))
		}
	}
	return out
}

func (m *Machine) sorted() []string {
	ids := make([]string, 0, len(m.ids))
	for id := range m.ids {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Dump writes all that the log determines, one line for each id in order. Two
// machines with the same log have the same dump.
func (m *Machine) Dump() string {
	var b strings.Builder
	for _, id := range m.sorted() {
		if t := m.get(id); t != nil {
			fmt.Fprintf(&b, "%s: ", id)
			t.dump(&b)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
