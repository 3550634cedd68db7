package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/core/record"
)

// driver does for one machine what a shard does, without log and threads: it
// appends what the machine says, replays it and collects the replies.
type driver struct {
	m      *Machine
	o      Options
	nowMs  int64
	log    []entry
	ids    int
	tokens map[coord.Token]string
	parked map[coord.Token]bool
	last   coord.Token
	// caller is who the next output is about, 0 for nobody.
	caller coord.Token
	// broken makes appends fail.
	broken bool
	// verified is what the last verification gave.
	verified uint64
	// topics are the ids that topics have now.
	topics map[string]ID
	// said collects the replies.
	said []said
}

type said struct {
	to       coord.Token
	response any
}

// entry is a record or a marker in the log.
type entry struct {
	r      coord.Replayed
	marker *record.Marker
	offset int64
}

func newDriver(o Options) *driver {
	d := &driver{
		o: o, nowMs: 1000,
		tokens: map[coord.Token]string{}, parked: map[coord.Token]bool{}, topics: map[string]ID{},
	}
	d.m = d.empty()
	d.m.Loaded(d.nowMs)
	return d
}

func (d *driver) empty() *Machine {
	return New(d.o, func() string {
		d.ids++
		return fmt.Sprint(d.ids)
	})
}

// token names a new caller.
func (d *driver) token(name string) coord.Token {
	d.last++
	d.tokens[d.last] = name
	d.parked[d.last] = true
	d.caller = d.last
	return d.last
}

// run takes an output as the shard does.
func (d *driver) run(out coord.Output) {
	caller := d.caller
	d.caller = 0
	if len(out.Records) > 0 && d.broken {
		told := []coord.Token{caller}
		for _, r := range out.Replies {
			told = append(told, r.To)
		}
		for _, to := range told {
			if d.parked[to] {
				d.answer(to, coord.Failure{Code: kerr.CoordinatorNotAvailable.Code})
				d.m.Forget(to)
			}
		}
		return
	}
	for _, r := range out.Records {
		e := entry{offset: int64(len(d.log)), r: coord.Replayed{
			Offset: int64(len(d.log)), TimestampMs: d.nowMs, ProducerID: -1, ProducerEpoch: -1,
			Key: slices.Clone(r.Key), Value: slices.Clone(r.Value),
		}}
		if out.Txn != nil {
			e.r.Transactional, e.r.ProducerID, e.r.ProducerEpoch = true, out.Txn.ProducerID, out.Txn.Epoch
		}
		d.log = append(d.log, e)
		if err := d.m.Replay(e.r); err != nil {
			panic(err)
		}
	}
	for _, r := range out.Replies {
		d.answer(r.To, r.Response)
	}
}

// note puts a line of text among the replies.
func (d *driver) note(name, text string) {
	d.last++
	d.tokens[d.last] = name
	d.said = append(d.said, said{d.last, show{text}})
}

// show is text among the replies.
type show struct{ text string }

// answer notes a reply. A second one for a token is dropped, as the shard does:
// the first can only have been a failure.
func (d *driver) answer(to coord.Token, response any) {
	if !d.parked[to] {
		return
	}
	delete(d.parked, to)
	d.said = append(d.said, said{to, response})
}

func (d *driver) marker(pid int64, commit bool) {
	mk := record.Marker{ProducerID: pid, Commit: commit, TimestampMs: d.nowMs}
	offset := int64(len(d.log))
	d.log = append(d.log, entry{marker: &mk, offset: offset})
	if err := d.m.ReplayMarker(mk, offset); err != nil {
		panic(err)
	}
}

// advance moves the clock, and ticks at every deadline on the way.
func (d *driver) advance(ms int64) {
	end := d.nowMs + ms
	for range 100_000 {
		at, ok := d.m.NextDeadline()
		if !ok || at > end {
			d.nowMs = end
			return
		}
		d.nowMs = max(d.nowMs, at)
		d.run(d.m.Tick(d.nowMs))
	}
	panic("the machine ticks without end")
}

// load makes a machine from a log.
func (d *driver) load(log []entry) (*Machine, error) {
	m := New(d.o, func() string { return "unused" })
	for _, e := range log {
		var err error
		if e.marker != nil {
			err = m.ReplayMarker(*e.marker, e.offset)
		} else {
			err = m.Replay(e.r)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// crash forgets all but the log.
func (d *driver) crash() {
	m, err := d.load(d.log)
	if err != nil {
		panic(err)
	}
	m.newID = d.m.newID
	m.options.Gone = d.gone
	d.m = m
	clear(d.parked)
	d.run(m.Loaded(d.nowMs))
}

// gone says that no topic has the id now.
func (d *driver) gone(id ID) bool {
	for _, now := range d.topics {
		if now == id {
			return false
		}
	}
	return true
}

// same fails the test if the machine is not what its log says.
func (d *driver) same(t *testing.T) {
	t.Helper()
	m, err := d.load(d.log)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if live, loaded := d.m.Dump(), m.Dump(); live != loaded {
		t.Fatalf("live state and replayed log differ\nlive:\n%s\nreplayed:\n%s", live, loaded)
	}
}

// take gives the replies since the last call as text.
func (d *driver) take() string {
	var b strings.Builder
	for _, s := range d.said {
		fmt.Fprintf(&b, "%s: %s\n", d.tokens[s.to], spoken(s.response))
	}
	d.said = nil
	return b.String()
}

func codeName(code int16) string {
	if code == 0 {
		return "NONE"
	}
	return kerr.TypedErrorForCode(code).Message
}

func spoken(response any) string {
	switch r := response.(type) {
	case coord.Failure:
		return "failure " + codeName(r.Code)
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode != 0 {
			return fmt.Sprintf("join %s member=%q", codeName(r.ErrorCode), r.MemberID)
		}
		s := fmt.Sprintf("join NONE generation=%d protocol=%s leader=%s member=%s", r.Generation, *r.Protocol, r.LeaderID, r.MemberID)
		if r.SkipAssignment {
			s += " skip-assignment"
		}
		for _, o := range r.Members {
			s += fmt.Sprintf(" [%s", o.MemberID)
			if o.InstanceID != nil {
				s += " instance=" + *o.InstanceID
			}
			s += fmt.Sprintf(" %s]", o.ProtocolMetadata)
		}
		return s
	case *kmsg.SyncGroupResponse:
		if r.ErrorCode != 0 {
			return "sync " + codeName(r.ErrorCode)
		}
		return fmt.Sprintf("sync NONE assignment=%q", r.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		return "heartbeat " + codeName(r.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		s := "leave " + codeName(r.ErrorCode)
		for _, o := range r.Members {
			s += fmt.Sprintf(" [%s%s %s]", o.MemberID, instanceOf(o.InstanceID), codeName(o.ErrorCode))
		}
		return s
	case Codes:
		var s []string
		for _, c := range r {
			s = append(s, codeName(c))
		}
		return "commit [" + strings.Join(s, " ") + "]"
	case Fetched:
		s := "fetch"
		for _, t := range r {
			for _, p := range t.Partitions {
				s += fmt.Sprintf(" %s-%d=%d", t.Topic, p.Partition, p.Offset)
				if p.Metadata != "" {
					s += fmt.Sprintf("(%s)", p.Metadata)
				}
				if p.Code != 0 {
					s += " " + codeName(p.Code)
				}
			}
		}
		return s
	case show:
		return r.text
	case Deleted:
		return fmt.Sprintf("deleted %d", r)
	}
	return fmt.Sprintf("%T", response)
}

func instanceOf(s *string) string {
	if s == nil {
		return ""
	}
	return "@" + *s
}
