package api

import (
	"encoding/binary"
	"time"

	"github.com/millrace/millrace/broker/internal/listener"
)

// decode reads the request. A partition that is listed twice is answered once.
func (f *fetch) decode(body []byte) error {
	version := f.c.Version
	d := decoder{src: body, flexible: version >= 12}
	f.replica = -1
	if version <= 14 {
		f.replica = d.i32()
	}
	f.maxWait = time.Duration(d.i32()) * time.Millisecond
	f.minBytes, f.maxBytes, f.isolation = d.i32(), d.i32(), d.i8()
	f.sessionID, f.epoch = 0, -1
	if version >= 7 {
		f.sessionID, f.epoch = d.i32(), d.i32()
	}
	for n := d.array(); n > 0 && !d.bad; n-- {
		t := f.topic(&d)
		for m := d.array(); m > 0 && !d.bad; m-- {
			r := fetchRow{topic: len(f.topics), leaderEpoch: -1, lastEpoch: -1}
			r.decode(&d, version)
			key := fetchKey{id: t.id, name: t.name, index: r.index}
			if _, again := f.seen[key]; !again {
				f.seen[key] = struct{}{}
				f.rows = append(f.rows, r)
			}
		}
		d.tags(nil)
		t.end = len(f.rows)
		f.topics = append(f.topics, t)
	}
	if version >= 7 {
		f.decodeForgotten(&d)
	}
	if version >= 11 {
		d.str() // rack: there is one replica to read from
	}
	d.tags(func(tag uint64, field *decoder) {
		if tag == 1 && version >= 15 {
			f.replica = field.i32()
		}
	})
	return d.err("Fetch", version)
}

// topic reads the name or id of a topic and looks it up.
func (f *fetch) topic(d *decoder) fetchTopic {
	t := fetchTopic{first: len(f.rows)}
	if f.c.Version >= 13 {
		t.id = d.id()
		t.known = f.s.Replicas.TopicByID(t.id)
	} else {
		name := d.str()
		d.bad = d.bad || name == nil
		if t.known = f.s.Replicas.Topic(name); t.known == nil {
			t.name = string(name)
		}
	}
	if t.known != nil {
		t.name = t.known.Name
	}
	return t
}

func (r *fetchRow) decode(d *decoder, version int16) {
	r.index = d.i32()
	if version >= 9 {
		r.leaderEpoch = d.i32()
	}
	r.offset = d.i64()
	if version >= 12 {
		r.lastEpoch = d.i32()
	}
	if version >= 5 {
		d.i64() // log start offset of a follower
	}
	r.maxBytes = d.i32()
	d.tags(nil)
}

func (f *fetch) decodeForgotten(d *decoder) {
	for n := d.array(); n > 0 && !d.bad; n-- {
		t := f.topic(d)
		for m := d.array(); m > 0 && !d.bad; m-- {
			f.forgotten = append(f.forgotten, fetchKey{id: t.id, name: t.name, index: d.i32()})
		}
		d.tags(nil)
	}
}

// head begins the answer.
func (f *fetch) head(code int16, sessionID int32) (*listener.Answer, encoder) {
	version := f.c.Version
	a := listener.NewAnswer()
	e := encoder{dst: f.c.responseHeader(a.Buf, version >= 12), flexible: version >= 12}
	e.i32(0) // throttle time
	if version >= 7 {
		e.i16(code)
		e.i32(sessionID)
	}
	return a, e
}

// refuse answers the whole request with an error and without partitions.
func (f *fetch) refuse(code int16) {
	a, e := f.head(code, 0)
	e.array(0)
	e.noTags()
	a.Buf = e.dst
	f.answer(a)
}

// encode appends one partition's head and hands its sections to the answer.
func (r *fetchRow) encode(a *listener.Answer, e *encoder, version int16, committed bool, h leaderHint) {
	high, stable, start := r.marks.HighWatermark, r.marks.LastStable, r.marks.LogStart
	if r.code != 0 {
		high, stable, start = -1, -1, -1
	}
	e.i32(r.index)
	e.i16(r.code)
	e.i64(high)
	e.i64(stable)
	if version >= 5 {
		e.i64(start)
	}
	r.encodeAborted(e, committed)
	if version >= 11 {
		e.i32(-1) // preferred read replica
	}
	n := 0
	if r.read != nil {
		n = r.read.Bytes
	}
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(n)+1)
	} else {
		e.i32(int32(n))
	}
	if n > 0 {
		a.Buf = e.dst
		for _, s := range r.read.Sections {
			a.Append(listener.Section{File: s.File, Offset: s.Offset, Len: s.Len})
		}
	}
	if !e.flexible {
		return
	}
	switch {
	case r.diverging:
		e.dst = append(e.dst, 1, 0, 13) // one tag: 0, 13 bytes
		e.i32(r.divEpoch)
		e.i64(r.divEnd)
		e.noTags()
	case h.ok:
		e.dst = append(e.dst, 1) // one tag
		h.appendTo(e, 1)
	default:
		e.noTags()
	}
}

// encodeAborted appends the transactions that a read_committed consumer must
// skip; null for a consumer that reads everything.
func (r *fetchRow) encodeAborted(e *encoder, committed bool) {
	if !committed || r.code != 0 {
		if e.flexible {
			e.dst = append(e.dst, 0)
		} else {
			e.i32(-1)
		}
		return
	}
	if r.read == nil {
		e.array(0)
		return
	}
	e.array(len(r.read.Aborted))
	for _, t := range r.read.Aborted {
		e.i64(t.ProducerID)
		e.i64(t.FirstOffset)
		e.noTags()
	}
}
