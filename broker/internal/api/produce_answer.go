package api

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/broker/internal/listener"
)

// response encodes the answer, nil for acks=0.
func (p *produce) response() *listener.Answer {
	if p.acks == 0 {
		for i := range p.rows {
			if p.rows[i].code != 0 {
				a := listener.NewAnswer()
				a.Close = true
				return a
			}
		}
		return nil
	}
	version := p.c.Version
	a := listener.NewAnswer()
	e := encoder{dst: p.c.responseHeader(a.Buf, version >= 9), flexible: version >= 9}
	hinted := false
	e.array(len(p.topics))
	for i := range p.topics {
		t := &p.topics[i]
		if version >= 13 {
			e.dst = append(e.dst, t.id[:]...)
		} else {
			e.str(t.name)
		}
		e.array(t.end - t.first)
		for j := t.first; j < t.end; j++ {
			r := &p.rows[j]
			r.encode(&e, version)
			h := p.s.hint(r.code, t.name, r.index)
			if version < 10 || !h.ok {
				e.noTags()
				continue
			}
			hinted = true
			e.dst = append(e.dst, 1) // one tag
			h.appendTo(&e, 0)
		}
		e.noTags()
	}
	e.i32(0) // throttle time
	p.s.endpoints(&e, p.c, hinted)
	a.Buf = e.dst
	return a
}

// encode appends the row but for its tags.
func (r *produceRow) encode(e *encoder, version int16) {
	base, appendTime, logStart := r.appended.BaseOffset, r.appended.LogAppendTimeMs, r.appended.LogStartOffset
	if r.code != 0 {
		base, appendTime = -1, -1
		if r.code != kerr.UnknownProducerID.Code {
			logStart = -1
		}
	}
	e.i32(r.index)
	e.i16(r.code)
	e.i64(base)
	e.i64(appendTime)
	if version >= 5 {
		e.i64(logStart)
	}
	if version >= 8 {
		e.array(len(r.errors))
		for _, re := range r.errors {
			e.i32(re.Index)
			e.nullable(re.Message)
			e.noTags()
		}
		e.nullable(r.reason)
	}
}
