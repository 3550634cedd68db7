package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// harness owns a machine as the broker would: it appends records to a log, replays
// them, keeps decisions until they are carried out, and can fail an append. After
// every step it checks what must always hold.
type harness struct {
	t       testing.TB
	m       *Machine
	shadow  *Machine // fed with the log alone, record by record
	nowMs   int64
	nextPID int64
	noPID   bool
	// noTwoPhase makes machines, from the next restart on, that refuse two-phase commit.
	noTwoPhase bool
	log        []Record
	decisions  []Decision
	carried    Decision // the last one carried out
	failNext   bool
	tokens     Token
	replies    map[Token]any
	out        strings.Builder
}

func newHarness(t testing.TB) *harness {
	h := &harness{t: t, nowMs: 1000, nextPID: 100, replies: map[Token]any{}}
	h.m, h.shadow = h.machine(), h.machine()
	return h
}

func (h *harness) machine() *Machine {
	m, err := New(Options{TwoPhase: !h.noTwoPhase, ProducerIDs: func() (int64, error) {
		if h.noPID {
			return 0, fmt.Errorf("no block of producer ids")
		}
		h.nextPID++
		return h.nextPID - 1, nil
	}})
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

// restart loads a new machine from the first n records of the log.
func (h *harness) restart(n int) {
	h.log = h.log[:n]
	h.decisions = nil
	h.m, h.shadow = h.replayed(h.log), h.replayed(h.log)
	h.apply(h.m.Loaded())
}

func (h *harness) replayed(log []Record) *Machine {
	m := h.machine()
	for _, r := range log {
		if err := m.Replay(r.Key, r.Value); err != nil {
			h.t.Fatal(err)
		}
	}
	return m
}

// do runs a handler and all that can go on after it. It returns the token of the
// caller.
func (h *harness) do(f func(to Token) Output) Token {
	h.tokens++
	to := h.tokens
	h.apply(f(to))
	for {
		out, ok := h.m.Resume(h.nowMs)
		if !ok {
			break
		}
		h.apply(out)
	}
	h.check()
	return to
}

func (h *harness) apply(out Output) {
	if h.failNext && len(out.Records) > 0 {
		h.failNext = false
		fmt.Fprintln(&h.out, "append failed")
		for _, r := range out.Replies {
			h.m.Forget(r.To)
		}
		h.m.Forget(h.tokens)
		return
	}
	for _, r := range out.Records {
		h.checkEdge(r)
		h.log = append(h.log, r)
		if err := errors.Join(h.m.Replay(r.Key, r.Value), h.shadow.Replay(r.Key, r.Value)); err != nil {
			h.t.Fatal(err)
		}
		id, _, _ := decodeKey(r.Key)
		if r.Value == nil {
			fmt.Fprintf(&h.out, "record %s: tombstone\n", id)
			continue
		}
		md, _ := decodeValue(r.Value)
		var b strings.Builder
		md.dump(&b)
		fmt.Fprintf(&h.out, "record %s: %s\n", id, b.String())
	}
	for _, r := range out.Replies {
		h.reply(r)
	}
	for _, n := range out.Notices {
		fmt.Fprintf(&h.out, "notice %s: pid=%d epoch=%d age=%d kept=%t\n", n.ID, n.ProducerID, n.Epoch, n.AgeMs, n.Kept)
	}
	for _, d := range out.Decisions {
		h.decisions = append(h.decisions, d)
		fmt.Fprintf(&h.out, "decision %s: pid=%d epoch=%d commit=%t bumped=%t %v\n", d.ID, d.ProducerID, d.Epoch, d.Commit, d.Bumped, d.Partitions)
	}
}

// checkEdge fails on a change of state that no state declares.
func (h *harness) checkEdge(r Record) {
	id, _, err := decodeKey(r.Key)
	if err != nil {
		h.t.Fatal(err)
	}
	next := metadata{state: Dead}
	if r.Value != nil {
		if next, err = decodeValue(r.Value); err != nil {
			h.t.Fatal(err)
		}
	}
	prev := absent
	var before metadata
	if t := h.m.get(id); t != nil {
		prev, before = t.state, t.metadata
	}
	if !next.state.Follows(prev) {
		h.t.Fatalf("%s: %v after %v", id, next.state, prev)
	}
	if next.state == Dead {
		return
	}
	if prev != absent && next.producerID == before.producerID && next.epoch < before.epoch ||
		prev == Kept && next.state == Kept && next.nextID == before.nextID && next.nextEpoch < before.nextEpoch {
		h.t.Fatalf("%s: epoch fell from %d to %d", id, before.epoch, next.epoch)
	}
	if next.state == Kept && (next.nextEpoch < 0 || next.nextEpoch > maxDataEpoch || next.owner() == identity{next.producerID, next.epoch}) {
		h.t.Fatalf("%s: kept with epoch %d for its owner", id, next.nextEpoch)
	}
	if next.epoch < 0 || (next.epoch > maxDataEpoch && next.state == Ongoing) {
		h.t.Fatalf("%s: %v with epoch %d", id, next.state, next.epoch)
	}
}

// check compares the running machine with what its log alone says.
func (h *harness) check() {
	h.t.Helper()
	if live, loaded := h.m.Dump(), h.shadow.Dump(); live != loaded {
		h.t.Fatalf("state differs from its log:\nlive\n%sreplayed\n%s", live, loaded)
	}
}

// carryOut carries out the oldest decision: its reply leaves, its markers are
// durable.
func (h *harness) carryOut() {
	d := h.decisions[0]
	h.decisions = h.decisions[1:]
	h.carried = d
	if d.Reply.To != 0 {
		h.reply(d.Reply)
	}
	h.do(func(Token) Output { return h.m.Completed(h.nowMs, d) })
}

func (h *harness) reply(r Reply) {
	if old, ok := h.replies[r.To]; ok {
		h.t.Fatalf("#%d answered twice: %v, then %v", r.To, old, r.Response)
	}
	h.replies[r.To] = r.Response
	fmt.Fprintf(&h.out, "reply #%d: %s\n", r.To, describe(r.Response))
}

func describe(response any) string {
	switch r := response.(type) {
	case InitReply:
		if r.Code != CodeNone {
			return code(r.Code)
		}
		if r.OngoingProducerID != none || r.OngoingEpoch != none {
			return fmt.Sprintf("pid=%d epoch=%d ongoing=%d:%d", r.ProducerID, r.Epoch, r.OngoingProducerID, r.OngoingEpoch)
		}
		return fmt.Sprintf("pid=%d epoch=%d", r.ProducerID, r.Epoch)
	case EndReply:
		if r.Code != CodeNone || r.ProducerID == none {
			return code(r.Code)
		}
		return fmt.Sprintf("pid=%d epoch=%d", r.ProducerID, r.Epoch)
	case AddReply:
		var codes []string
		for _, c := range r.Codes {
			codes = append(codes, code(c))
		}
		if len(slices.Compact(slices.Clone(codes))) == 1 {
			return codes[0]
		}
		return strings.Join(codes, " ")
	}
	return fmt.Sprintf("%v", response)
}

func code(c int16) string {
	if c == 0 {
		return "NONE"
	}
	if e := kerr.TypedErrorForCode(c); e != nil {
		return e.Message
	}
	return fmt.Sprint(c)
}
