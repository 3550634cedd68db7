package api

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Limits of the session cache, Kafka's own.
const (
	maxSessions = 1000
	sessionIdle = 2 * time.Minute
)

// open makes a session, nil when all are in use.
func (c *sessions) open(now time.Time, byName bool, random io.Reader) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[int32]*session{}
	}
	if len(c.byID) >= maxSessions && !c.evict(now) {
		return nil
	}
	s := &session{byName: byName, used: now, epoch: 1, parts: map[fetchKey]*sessionPartition{}}
	for s.id == 0 || c.byID[s.id] != nil {
		var id [4]byte
		if _, err := io.ReadFull(random, id[:]); err != nil {
			return nil
		}
		s.id = int32(binary.BigEndian.Uint32(id[:]) >> 1)
	}
	c.byID[s.id] = s
	return s
}

// evict makes room by dropping the session that was not used for longest, if that
// is long enough; the caller holds mu.
func (c *sessions) evict(now time.Time) bool {
	var oldest *session
	for _, s := range c.byID {
		if oldest == nil || s.used.Before(oldest.used) {
			oldest = s
		}
	}
	if now.Sub(oldest.used) < sessionIdle {
		return false
	}
	delete(c.byID, oldest.id)
	return true
}

func (c *sessions) close(id int32) {
	c.mu.Lock()
	delete(c.byID, id)
	c.mu.Unlock()
}

// use finds a session and checks that the request is its next one.
func (c *sessions) use(now time.Time, id, epoch int32, byName bool) (*session, int16) {
	c.mu.Lock()
	s := c.byID[id]
	if s != nil {
		s.used = now
	}
	c.mu.Unlock()
	if s == nil {
		return nil, kerr.FetchSessionIDNotFound.Code
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.epoch != epoch:
		return nil, kerr.InvalidFetchSessionEpoch.Code
	case s.byName != byName:
		return nil, kerr.FetchSessionTopicIDError.Code
	}
	s.epoch++
	if s.epoch <= 0 { // 0 and -1 have meanings of their own
		s.epoch = 1
	}
	return s, 0
}

// The epochs of a request that is no step of a session.
const (
	epochNew   = 0  // a full fetch that begins a session
	epochFinal = -1 // a full fetch without one, which ends the one it names
)

// openSession puts the request into the session that it names, if any: the rows
// become all partitions of the session.
func (f *fetch) openSession() int16 {
	now, byName := f.s.Clock.Now(), f.c.Version < 13
	if f.epoch == epochNew || f.epoch == epochFinal {
		if f.sessionID != 0 {
			f.s.sessions.close(f.sessionID)
		}
		if f.epoch == epochNew && f.c.Version >= 7 && len(f.rows) > 0 {
			f.session = f.s.sessions.open(now, byName, f.s.Random)
		}
		if f.session != nil {
			f.session.update(f)
		}
		return 0
	}
	s, code := f.s.sessions.use(now, f.sessionID, f.epoch, byName)
	if code != 0 {
		return code
	}
	f.session, f.incremental = s, true
	s.update(f)
	s.fill(f)
	return 0
}

// update takes the partitions of a request into the session and forgets those
// that the request forgets.
func (s *session) update(f *fetch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range f.rows {
		r := &f.rows[i]
		t := &f.topics[r.topic]
		key := fetchKey{id: t.id, name: t.name, index: r.index}
		if t.id != ([16]byte{}) {
			key.name = "" // a topic that is created later has no name yet
		}
		p := s.parts[key]
		if p == nil {
			p = &sessionPartition{key: key, high: -1, start: -1}
			s.parts[key] = p
			s.order = append(s.order, p)
		}
		p.row = *r
	}
	for _, key := range f.forgotten {
		if key.id != ([16]byte{}) {
			key.name = ""
		}
		delete(s.parts, key)
	}
	if len(f.forgotten) > 0 {
		kept := s.order[:0]
		for _, p := range s.order {
			if s.parts[p.key] == p {
				kept = append(kept, p)
			}
		}
		clear(s.order[len(kept):])
		s.order = kept
	}
}

// fill makes the rows of an incremental fetch: every partition of the session,
// looked up anew, for topics come and go.
func (s *session) fill(f *fetch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(f.rows)
	clear(f.topics)
	f.rows, f.topics = f.rows[:0], f.topics[:0]
	for _, p := range s.order {
		n := len(f.topics)
		if n == 0 || f.topics[n-1].id != p.key.id || p.key.id == ([16]byte{}) && f.topics[n-1].name != p.key.name {
			f.topics = append(f.topics, f.lookUp(p.key.id, p.key.name))
			n++
		}
		r := p.row
		r.topic, r.of = n-1, p
		f.rows = append(f.rows, r)
		f.topics[n-1].end = len(f.rows)
	}
}

// lookUp finds a topic by id, if it has one, else by name.
func (f *fetch) lookUp(id [16]byte, name string) fetchTopic {
	t := fetchTopic{id: id, name: name, first: len(f.rows)}
	if f.c.Version >= 13 {
		t.known = f.s.Replicas.TopicByID(id)
	} else {
		t.known = f.s.Replicas.Topic([]byte(name))
	}
	if t.known != nil {
		t.name = t.known.Name
	}
	return t
}

// remember notes in the session what the answer tells, and marks the rows that it
// need not tell again. The first answer of a session tells everything.
func (f *fetch) remember() {
	s := f.session
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range f.rows {
		r := &f.rows[i]
		p := r.of
		if p == nil { // a full fetch
			t := &f.topics[r.topic]
			key := fetchKey{id: t.id, index: r.index}
			if t.id == ([16]byte{}) {
				key.name = t.name
			}
			if p = s.parts[key]; p == nil {
				continue
			}
		}
		again := r.code != 0 || r.diverging
		news := again || r.read != nil && r.read.Bytes > 0 || p.high != r.marks.HighWatermark || p.start != r.marks.LogStart
		r.unchanged = f.incremental && !news
		p.high, p.start = r.marks.HighWatermark, r.marks.LogStart
		if again {
			p.high = -1 // so that the end of the error is told too
		}
	}
}
