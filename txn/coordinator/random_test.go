package coordinator

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// history drives a machine and a model with the same random requests of well-behaved
// clients, zombies and repeats.
type history struct {
	*harness
	r      *rand.Rand
	models map[string]*model
	seen   map[string][]creds // per id: all credentials that were ever handed out
	steps  []string
}

const randomTimeoutMs = 500

// TestRandomHistoriesAgainstModel lets every request come to its end before the next:
// each answer is the model's, every decision has exactly the model's partitions.
func TestRandomHistoriesAgainstModel(t *testing.T) {
	for seed := range uint64(120) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			h := &history{
				harness: newHarness(t), r: rand.New(rand.NewPCG(seed, 1)),
				models: map[string]*model{"a": {}, "b": {}}, seen: map[string][]creds{},
			}
			defer func() {
				if t.Failed() {
					for _, s := range h.steps {
						t.Log(s)
					}
				}
			}()
			for range 150 {
				h.step()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// settle carries out all decisions.
func (h *history) settle() {
	for len(h.decisions) > 0 {
		h.carryOut()
	}
}

func (h *history) note(format string, args ...any) {
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

func (h *history) step() {
	id := []string{"a", "b"}[h.r.IntN(2)]
	m := h.models[id]
	switch n := h.r.IntN(20); {
	case n < 6:
		h.stepAdd(id, m)
	case n < 13:
		h.stepEnd(id, m)
	case n < 16:
		h.stepInit(id, m)
	case n == 16:
		h.note("restart")
		h.restart(len(h.log))
		h.settle()
		h.check()
	case n == 17 && m.known && m.open == nil && m.owner.epoch < 32000:
		e := int16(32760 + h.r.IntN(7))
		h.note("epoch %s %d", id, e)
		h.run(fmt.Sprintf("epoch id=%s epoch=%d", id, e))
		// Whoever came before is older now by more than one.
		m.owner.epoch, m.before = e, nil
		h.seen[id] = append(h.seen[id], m.owner)
		h.run(fmt.Sprintf("init id=%s timeout=%d", id, randomTimeoutMs))
		m.inited(nil, false, false, h.replyCreds(h.tokens))
		h.seen[id] = append(h.seen[id], m.owner)
	default:
		ms := h.r.Int64N(300)
		h.note("advance %d", ms)
		h.nowMs += ms
		for _, id := range []string{"a", "b"} {
			if t := h.m.get(id); t != nil && h.models[id].open != nil && !h.models[id].twoPhase && t.startMs+randomTimeoutMs <= h.nowMs {
				h.models[id].timeout()
			}
		}
		h.do(func(Token) Output { return h.m.Tick(h.nowMs) })
		h.settle()
	}
}

func (h *history) replyCreds(to Token) creds {
	switch r := h.replies[to].(type) {
	case InitReply:
		return creds{r.ProducerID, r.Epoch}
	case EndReply:
		return creds{r.ProducerID, r.Epoch}
	}
	h.t.Fatalf("no credentials in %v", h.replies[to])
	return creds{}
}

// pick chooses credentials: mostly the owner's, else old ones or foreign ones.
func (h *history) pick(id string, m *model) creds {
	seen := h.seen[id]
	switch n := h.r.IntN(10); {
	case len(seen) == 0 || n == 0:
		return creds{h.r.Int64N(3) + 90, int16(h.r.IntN(3))}
	case n < 3:
		return seen[h.r.IntN(len(seen))]
	case m.before != nil && (n < 5 || !m.owner.usable()):
		return *m.before
	default:
		return m.owner
	}
}

func (h *history) stepAdd(id string, m *model) {
	c := h.pick(id, m)
	var tps []TopicPartition
	for range 1 + h.r.IntN(3) {
		tps = append(tps, TopicPartition{[]string{"t", "u"}[h.r.IntN(2)], int32(h.r.IntN(3))})
	}
	to := h.do(func(to Token) Output {
		return h.m.AddPartitions(h.nowMs, to, AddRequest{ID: id, ProducerID: c.pid, Epoch: c.epoch, Partitions: tps, Implicit: true, Version: 5})
	})
	got := h.replies[to].(AddReply).Codes
	want := m.add(c, tps)
	h.note("add %s %v %v: %v", id, c, tps, got)
	for _, code := range got {
		if code != want || len(got) != len(tps) {
			h.t.Fatalf("add %s %v: codes %v, want %d", id, c, got, want)
		}
	}
}

func (h *history) stepEnd(id string, m *model) {
	c, commit := h.pick(id, m), h.r.IntN(3) > 0
	want, decides := m.end(c, commit)
	open, began := m.open, m.began
	to := h.do(func(to Token) Output {
		return h.m.EndTxn(h.nowMs, to, EndRequest{ID: id, ProducerID: c.pid, Epoch: c.epoch, Commit: commit, Version: 5})
	})
	if decides != (len(h.decisions) == 1) {
		h.t.Fatalf("end %s %v commit=%t: decisions %v, want one: %t", id, c, commit, h.decisions, decides)
	}
	if decides {
		d := h.decisions[0]
		var tps []TopicPartition
		for tp := range open {
			tps = append(tps, tp)
		}
		slices.SortFunc(tps, comparePartitions)
		if !reflect.DeepEqual(d.Partitions, tps) || d.Commit != commit || d.ProducerID != began.pid || d.Epoch != began.epoch+1 || !d.Bumped {
			h.t.Fatalf("end %s %v commit=%t: decision %+v, want partitions %v", id, c, commit, d, tps)
		}
	}
	h.settle()
	got := h.replies[to].(EndReply)
	h.note("end %s %v commit=%t: %v", id, c, commit, got)
	if got.Code != want {
		h.t.Fatalf("end %s %v commit=%t: code %d, want %d", id, c, commit, got.Code, want)
	}
	if want != CodeNone {
		return
	}
	h.checkNext(id, m, c, commit, creds{got.ProducerID, got.Epoch})
}

// checkNext looks at the credentials of a successful EndTxn: a repeat gives the same
// as the first time.
func (h *history) checkNext(id string, m *model, c creds, commit bool, got creds) {
	if c != m.owner && m.owner.usable() {
		if got != m.owner {
			h.t.Fatalf("repeated end of %s %v gives %v, first %v", id, c, got, m.owner)
		}
		return
	}
	want, rotated := c.next()
	fresh := got.epoch == 0 && got.pid != c.pid && !slices.ContainsFunc(h.seen[id], func(o creds) bool { return o.pid == got.pid })
	if rotated && !fresh || !rotated && got != want {
		h.t.Fatalf("end of %s %v gives %v, want %v, a new id: %t", id, c, got, want, rotated)
	}
	m.ended(c, commit, got)
	h.seen[id] = append(h.seen[id], got)
}

func (h *history) stepInit(id string, m *model) {
	var c *creds
	r := InitRequest{ID: id, ProducerID: none, Epoch: none, TimeoutMs: randomTimeoutMs, Version: 5}
	if h.r.IntN(3) > 0 {
		p := h.pick(id, m)
		c = &p
		r.ProducerID, r.Epoch = p.pid, p.epoch
	}
	r.KeepPrepared, r.Enable2PC = h.r.IntN(2) == 0, h.r.IntN(3) == 0
	to := h.do(func(to Token) Output { return h.m.InitProducerID(h.nowMs, to, r) })
	for _, d := range h.decisions {
		if d.Commit {
			h.t.Fatalf("init of %s commits: %+v", id, d)
		}
	}
	h.settle()
	got := h.replies[to].(InitReply)
	h.note("init %s %v keep=%t 2pc=%t: %v", id, c, r.KeepPrepared, r.Enable2PC, got)
	if may := m.mayInit(c, r.KeepPrepared); may != (got.Code == CodeNone) || !may && got.Code != CodeProducerFenced {
		h.t.Fatalf("init %s %v: %v, want it taken: %t", id, c, got, may)
	}
	if got.Code != CodeNone {
		return
	}
	gave := creds{got.ProducerID, got.Epoch}
	ongoing := creds{got.OngoingProducerID, got.OngoingEpoch}
	if r.KeepPrepared && m.open != nil && ongoing != m.began || (!r.KeepPrepared || m.open == nil) && ongoing != (creds{none, none}) {
		h.t.Fatalf("init %s %v: ongoing %v, the model began %v: %t", id, c, ongoing, m.began, m.open != nil)
	}
	again := m.sameAgain(c)
	if again && gave != m.owner || !again && slices.Contains(h.seen[id], gave) || !gave.usable() {
		h.t.Fatalf("init %s %v gives %v, the owner has %v, the same again: %t", id, c, gave, m.owner, again)
	}
	m.inited(c, r.KeepPrepared, r.Enable2PC, gave)
	h.seen[id] = append(h.seen[id], gave)
}
