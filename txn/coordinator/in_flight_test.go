package coordinator

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// disorder drives a machine with requests of both versions that overlap: decisions
// are carried out late and in any order, appends fail, power cuts take records whose
// replies had not left. What is checked is what no order may break.
type disorder struct {
	*harness
	r *rand.Rand
	// durable is how many records a power cut leaves; held replies wait for more.
	durable int
	held    []heldReply
	asked   map[Token]any // requests that have no answer
	given   map[creds]Token
	creds   []creds
}

type heldReply struct {
	need  int
	reply Reply
}

// TestOverlappingRequests checks that an answer never tells of what a power cut takes
// back, that no credentials are given to two incarnations, that a transaction whose
// commit was confirmed is committed in the log, and that nobody is left without an
// answer.
func TestOverlappingRequests(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			d := &disorder{
				harness: newHarness(t), r: rand.New(rand.NewPCG(seed, 2)),
				asked: map[Token]any{}, given: map[creds]Token{},
			}
			for range 300 {
				d.step()
			}
			d.quiesce()
		})
	}
}

func (d *disorder) step() {
	switch n := d.r.IntN(24); {
	case n < 16:
		d.request()
	case n < 20:
		if k := len(d.decisions); k > 0 {
			i := d.r.IntN(k)
			d.decisions[0], d.decisions[i] = d.decisions[i], d.decisions[0]
			d.finish()
		}
	case n == 20:
		d.failNext = true
		d.request()
		d.failNext = false
	case n == 21:
		d.powerCut()
	default:
		d.nowMs += d.r.Int64N(400)
		d.run1(nil, func(Token) Output { return d.m.Tick(d.nowMs) })
	}
	d.flush(d.durable + d.r.IntN(len(d.log)-d.durable+1))
}

// run1 is do with replies that wait until they are durable.
func (d *disorder) run1(request any, f func(Token) Output) {
	d.tokens++
	to := d.tokens
	if request != nil {
		d.asked[to] = request
	}
	d.take(f(to), to)
	for {
		out, ok := d.m.Resume(d.nowMs)
		if !ok {
			break
		}
		d.take(out, 0)
	}
	d.check()
}

func (d *disorder) take(out Output, to Token) {
	if d.failNext && len(out.Records) > 0 {
		d.failNext = false
		for _, r := range out.Replies {
			d.forget(r.To)
		}
		for _, dec := range out.Decisions {
			d.forget(dec.Reply.To)
		}
		d.forget(to)
		return
	}
	replies := out.Replies
	out.Replies = nil
	d.apply(out)
	for _, r := range replies {
		d.held = append(d.held, heldReply{len(d.log), r})
	}
}

func (d *disorder) forget(to Token) {
	d.m.Forget(to)
	delete(d.asked, to)
}

// flush makes n records durable and lets the replies that waited for them go.
func (d *disorder) flush(n int) {
	d.durable = max(d.durable, n)
	var rest []heldReply
	for _, h := range d.held {
		if h.need > d.durable {
			rest = append(rest, h)
			continue
		}
		d.answered(h.reply)
	}
	d.held = rest
}

func (d *disorder) answered(r Reply) {
	request, ok := d.asked[r.To]
	if !ok {
		if r.To != 0 {
			d.t.Fatalf("#%d is answered, but nobody waits: %v", r.To, r.Response)
		}
		return
	}
	delete(d.asked, r.To)
	switch q := request.(type) {
	case InitRequest:
		reply := r.Response.(InitReply)
		if reply.Code != CodeNone {
			return
		}
		c := creds{reply.ProducerID, reply.Epoch}
		if by, twice := d.given[c]; twice && q.fresh() {
			d.t.Fatalf("#%d, a new incarnation, is given %v as #%d was", r.To, c, by)
		}
		d.given[c] = r.To
		if !q.KeepPrepared && reply.OngoingProducerID != none {
			d.t.Fatalf("#%d, which keeps nothing, is told of %d:%d", r.To, reply.OngoingProducerID, reply.OngoingEpoch)
		}
		d.creds = append(d.creds, c)
	case EndRequest:
		reply := r.Response.(EndReply)
		if reply.Code != CodeNone {
			return
		}
		if q.Commit {
			d.checkCommitted(q)
		}
		if q.Version >= endBumpsEpoch {
			d.creds = append(d.creds, creds{reply.ProducerID, reply.Epoch})
		}
	}
}

// checkCommitted looks for the decision of a confirmed commit in the durable log.
func (d *disorder) checkCommitted(q EndRequest) {
	for _, r := range d.log[:d.durable] {
		md, err := decodeValue(r.Value)
		if err != nil || md.state != PrepareCommit {
			continue
		}
		by := md.completed(0).owner() // what a client of version 1 may repeat with
		if q.Version >= endBumpsEpoch {
			by = identity{md.previousID, md.lastEpoch}
		}
		if by == (identity{q.ProducerID, q.Epoch}) {
			return
		}
	}
	d.t.Fatalf("commit of %d epoch %d, version %d, is confirmed and not in the log", q.ProducerID, q.Epoch, q.Version)
}

// finish carries out the first decision, whose records are durable by then.
func (d *disorder) finish() {
	d.flush(len(d.log))
	dec := d.decisions[0]
	d.decisions = d.decisions[1:]
	if dec.Reply.To != 0 {
		d.answered(dec.Reply)
	}
	d.run1(nil, func(Token) Output { return d.m.Completed(d.nowMs, dec) })
}

func (d *disorder) powerCut() {
	n := d.durable + d.r.IntN(len(d.log)-d.durable+1)
	d.held = nil
	clear(d.asked)
	d.restart(n)
	d.durable = n
}

func (d *disorder) request() {
	id := []string{"a", "b"}[d.r.IntN(2)]
	c := creds{none, none}
	if k := len(d.creds); k > 0 && d.r.IntN(4) > 0 {
		c = d.creds[max(0, k-1-d.r.IntN(4))] // mostly the newest
	}
	version := int16(3 + 2*d.r.IntN(2))
	switch d.r.IntN(5) {
	case 0:
		r := InitRequest{ID: id, ProducerID: c.pid, Epoch: c.epoch, TimeoutMs: 2000, Version: 6,
			KeepPrepared: d.r.IntN(2) == 0, Enable2PC: d.r.IntN(3) == 0}
		d.run1(r, func(to Token) Output { return d.m.InitProducerID(d.nowMs, to, r) })
	case 1, 2:
		r := AddRequest{ID: id, ProducerID: c.pid, Epoch: c.epoch, Implicit: version == 5, Version: version,
			Partitions: []TopicPartition{{"t", int32(d.r.IntN(4))}}}
		d.run1(r, func(to Token) Output { return d.m.AddPartitions(d.nowMs, to, r) })
	default:
		r := EndRequest{ID: id, ProducerID: c.pid, Epoch: c.epoch, Commit: d.r.IntN(3) > 0, Version: version}
		d.run1(r, func(to Token) Output { return d.m.EndTxn(d.nowMs, to, r) })
	}
}

// quiesce lets everything come to rest: nobody may be left waiting, nothing undecided.
func (d *disorder) quiesce() {
	for _, id := range []string{"a", "b"} { // a two-phase commit waits for somebody
		r := InitRequest{ID: id, ProducerID: none, Epoch: none, TimeoutMs: 2000, Version: 6}
		d.run1(r, func(to Token) Output { return d.m.InitProducerID(d.nowMs, to, r) })
	}
	for range 10 {
		for len(d.decisions) > 0 {
			d.finish()
		}
		d.nowMs += 2000
		d.run1(nil, func(Token) Output { return d.m.Tick(d.nowMs) })
		d.flush(len(d.log))
	}
	if len(d.asked) > 0 || len(d.held) > 0 {
		d.t.Fatalf("without an answer: %v, held %v", d.asked, d.held)
	}
	for id, t := range d.m.ids {
		if t.state.deciding() || t.state.open() || len(t.parked) > 0 {
			d.t.Fatalf("%s rests in %v with %d waiting", id, t.state, len(t.parked))
		}
	}
	// All that is left to do is to forget the ids.
	if ms, ok := d.m.NextDeadline(); ok {
		if ms < d.nowMs+defaultExpiration.Milliseconds()-3_600_000 {
			d.t.Fatalf("a deadline at %d is left, it is %d", ms, d.nowMs)
		}
		d.nowMs = ms + defaultSweepInterval.Milliseconds()
		d.run1(nil, func(Token) Output { return d.m.Tick(d.nowMs) })
		d.flush(len(d.log))
	}
	if ms, ok := d.m.NextDeadline(); ok || len(d.m.ids) > 0 {
		d.t.Fatalf("%d ids are left after they expired, deadline %d", len(d.m.ids), ms)
	}
}
