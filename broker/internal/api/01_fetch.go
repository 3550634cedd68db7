package api

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
)

// Fetch: versions 4 to 18.
//
// Version 7 has sessions (KIP-227), 12 is flexible and has the last fetched
// epoch, 13 names topics by id. The answer's head is encoded by hand around file
// sections: no record byte passes through this process on a TCP connection.
//
// The answer leaves when it has min_bytes, or an error or a diverging epoch in
// any partition, or when max_wait has passed; until then the request is parked on
// its partitions and looked at again whenever one of them advances, by an append
// or by a marker that moves the last stable offset. The first partition with data
// gives at least one batch, whole, however small the limits are; which one is
// first rotates from request to request, so that a limit starves nobody.
//
// Every requested partition is answered exactly once, with its own error:
//   - TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
//   - NOT_LEADER_OR_FOLLOWER: a replica asks, and there are none
//   - FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH: the client's metadata is older or
//     newer than this node's
//   - OFFSET_OUT_OF_RANGE: below the log start or above the high watermark
//   - KAFKA_STORAGE_ERROR
//   - UNKNOWN_SERVER_ERROR: a negative limit or an unknown isolation level, as in
//     Kafka
//
// Errors of the whole request: FETCH_SESSION_ID_NOT_FOUND,
// INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
func serveFetch(s *Server, c *Call, body []byte, answer func(*listener.Answer)) error {
	f := fetches.Get().(*fetch)
	f.s, f.c, f.answer = s, c, answer
	if err := f.decode(body); err != nil {
		f.free()
		return err
	}
	c.frame.Release() // everything needed is decoded
	if code := f.openSession(); code != 0 {
		f.refuse(code)
		f.free()
		return nil
	}
	f.look()
	if f.ready() || f.maxWait <= 0 {
		f.finish()
		f.free()
		return nil
	}
	f.park()
	return nil
}

// fetch is one Fetch request under way. Until it is parked the reader of the
// connection owns it, afterwards whoever holds mu.
type fetch struct {
	s      *Server
	c      *Call
	answer func(*listener.Answer)

	replica            int32
	maxWait            time.Duration
	minBytes, maxBytes int32
	isolation          int8
	sessionID, epoch   int32
	topics             []fetchTopic
	rows               []fetchRow
	forgotten          []fetchKey
	seen               map[fetchKey]struct{}
	bytes              int
	urgent             bool     // an error or a diverging epoch: answer at once
	session            *session // nil without one
	incremental        bool     // the answer leaves out what did not change
	mu                 sync.Mutex
	done               bool // answered or being answered; owned by mu
	timer              clock.Timer
	cancels            []func()
	queued             atomic.Bool // waiting to be looked at
}

var fetches = sync.Pool{New: func() any { return &fetch{seen: map[fetchKey]struct{}{}} }}

// free gives the memory of a request back that was never parked. Of a parked one
// partitions and timers may still hold a pointer, so it is left to the collector.
func (f *fetch) free() {
	clear(f.topics)
	clear(f.rows)
	clear(f.forgotten)
	clear(f.seen)
	f.topics, f.rows, f.forgotten = f.topics[:0], f.rows[:0], f.forgotten[:0]
	f.s, f.c, f.answer, f.session, f.incremental = nil, nil, nil, nil, false
	fetches.Put(f)
}

// look fills every row, within the limits. It may be called again; what an
// earlier call found is given back first.
func (f *fetch) look() {
	f.bytes, f.urgent = 0, false
	left := int64(min(f.maxBytes, f.s.Config.FetchMaxBytes))
	n := len(f.rows)
	if n == 0 {
		return
	}
	start := int(f.s.rotation.Add(1) % uint64(n))
	for i := range n {
		r := &f.rows[(start+i)%n]
		r.release()
		f.lookAt(r, left)
		if r.code != 0 || r.diverging {
			f.urgent = true
		}
		if r.read != nil {
			f.bytes += r.read.Bytes
			left = max(left-int64(r.read.Bytes), 0)
		}
	}
}

// lookAt reads one partition, at most left bytes unless it is the first with
// data.
func (f *fetch) lookAt(r *fetchRow, left int64) {
	r.code, r.diverging = f.find(r), false
	if r.code != 0 {
		return
	}
	marks := r.partition.Marks()
	r.marks = marks
	if r.code = checkEpoch(r.leaderEpoch, marks.LeaderEpoch); r.code != 0 {
		return
	}
	if f.maxBytes < 0 || r.maxBytes < 0 || !f.knownIsolation() {
		r.code = kerr.UnknownServerError.Code
		return
	}
	if r.lastEpoch >= 0 && r.diverges() {
		return
	}
	read, err := r.partition.Read(partition.ReadOptions{
		Offset:     r.offset,
		MaxBytes:   int32(min(left, int64(r.maxBytes))),
		Committed:  f.isolation == 1,
		AtLeastOne: f.bytes == 0,
	})
	if err != nil {
		r.code = codeOf(err)
		return
	}
	r.read, r.marks = read, read.Marks
}

// code is the error of the whole request that has rows all the same.
func (f *fetch) code() int16 {
	if !f.knownIsolation() {
		return kerr.UnknownServerError.Code
	}
	return 0
}

func (f *fetch) knownIsolation() bool { return f.isolation == 0 || f.isolation == 1 }

// find looks the row's partition up.
func (f *fetch) find(r *fetchRow) int16 {
	t := &f.topics[r.topic]
	switch {
	case t.known == nil && f.c.Version >= 13:
		return kerr.UnknownTopicID.Code
	case !f.s.Authorize(f.c.Principal, kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, t.name):
		return kerr.TopicAuthorizationFailed.Code
	case t.known == nil:
		return kerr.UnknownTopicOrPartition.Code
	case f.replica >= 0:
		return kerr.NotLeaderForPartition.Code
	}
	p, err := t.known.Partition(r.index)
	if err != nil {
		return codeOf(err)
	}
	r.partition = p
	return 0
}

// diverges answers a client whose last fetched epoch does not lead to its offset
// in this log (KIP-595): it must truncate and ask again.
func (r *fetchRow) diverges() bool {
	epoch, end := r.partition.EpochEnd(r.lastEpoch)
	switch {
	case epoch < 0 || end < 0:
		r.code = kerr.OffsetOutOfRange.Code
		return true
	case epoch < r.lastEpoch || end < r.offset:
		r.diverging, r.divEpoch, r.divEnd = true, epoch, end
		return true
	}
	return false
}

// checkEpoch compares the leader epoch that a client knows with the current one;
// a negative one is not checked (KIP-320).
func checkEpoch(client, current int32) int16 {
	switch {
	case client < 0 || client == current:
		return 0
	case client < current:
		return kerr.FencedLeaderEpoch.Code
	}
	return kerr.UnknownLeaderEpoch.Code
}

func (r *fetchRow) release() {
	if r.read != nil {
		r.read.Release()
		r.read = nil
	}
}

// ready says whether the answer may leave before max_wait.
func (f *fetch) ready() bool {
	return f.urgent || int64(f.bytes) >= int64(f.minBytes) || len(f.rows) == 0
}

// finish answers the request with what the last look found. The files stay open
// until the answer has left.
func (f *fetch) finish() {
	f.remember()
	id := int32(0)
	if f.session != nil {
		id = f.session.id
	}
	a, e := f.head(f.code(), id)
	reads := make([]*partition.Read, 0, len(f.rows))
	topics, hinted := 0, false
	for i := range f.topics {
		if f.told(&f.topics[i]) > 0 || !f.incremental {
			topics++
		}
	}
	e.array(topics)
	for i := range f.topics {
		t := &f.topics[i]
		n := f.told(t)
		if n == 0 && f.incremental {
			continue
		}
		if f.c.Version >= 13 {
			e.dst = append(e.dst, t.id[:]...)
		} else {
			e.str(t.name)
		}
		e.array(n)
		for j := t.first; j < t.end; j++ {
			r := &f.rows[j]
			if !r.unchanged {
				h := f.s.hint(r.code, t.name, r.index)
				hinted = hinted || h.ok
				r.encode(a, &e, f.c.Version, f.isolation == 1, h)
			}
			if r.read != nil {
				reads = append(reads, r.read)
				r.read = nil
			}
		}
		e.noTags()
	}
	f.s.endpoints(&e, f.c, hinted && f.c.Version >= 16)
	a.Buf = e.dst
	a.OnRelease = func() {
		for _, r := range reads {
			r.Release()
		}
	}
	f.answer(a)
}

// told counts the rows of a topic that the answer has.
func (f *fetch) told(t *fetchTopic) int {
	n := 0
	for i := t.first; i < t.end; i++ {
		if !f.rows[i].unchanged {
			n++
		}
	}
	return n
}
