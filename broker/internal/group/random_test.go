package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// actor is a client of the random histories: it remembers what it was told, or
// says something else now and then.
type actor struct {
	group, client string
	id            string
	instance      *string
	generation    int32
	leader        bool
	members       []string
}

// history drives one machine at random.
type history struct {
	*driver
	t      *testing.T
	r      *rand.Rand
	actors []*actor
	asked  map[coord.Token]*actor
}

func newHistory(t *testing.T, seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 0))
	o := Options{MaxSize: 6, InitialRebalanceDelay: -1}
	if r.IntN(2) == 0 {
		o.InitialRebalanceDelay = 3 * time.Second
	}
	if r.IntN(2) == 0 { // offsets and groups expire in the midst of all
		o.Retention, o.RetentionCheckInterval = time.Duration(1+r.IntN(30))*time.Second, time.Duration(1+r.IntN(5000))*time.Millisecond
	}
	h := &history{driver: newDriver(o), t: t, r: r, asked: map[coord.Token]*actor{}}
	for i := range 16 {
		a := &actor{group: fmt.Sprintf("g%d", i%3), client: fmt.Sprintf("c%d", i), generation: -1}
		if i%2 == 0 {
			instance := fmt.Sprintf("i%d", i%6) // two actors fight for some instances
			a.instance = &instance
		}
		h.actors = append(h.actors, a)
	}
	for i := range 3 {
		h.topics[fmt.Sprintf("t%d", i)] = ID{byte(i + 1)}
	}
	return h
}

// ask makes a token whose answer the actor learns from.
func (h *history) ask(a *actor) coord.Token {
	to := h.token(a.client)
	h.asked[to] = a
	return to
}

// learn gives the actors their answers.
func (h *history) learn() {
	for _, s := range h.said {
		a := h.asked[s.to]
		switch r := s.response.(type) {
		case *kmsg.JoinGroupResponse:
			allowed := []int16{0, kerr.MemberIDRequired.Code, kerr.UnknownMemberID.Code, kerr.FencedInstanceID.Code,
				kerr.InconsistentGroupProtocol.Code, kerr.GroupMaxSizeReached.Code, kerr.CoordinatorLoadInProgress.Code}
			if !slices.Contains(allowed, r.ErrorCode) {
				h.t.Fatalf("a join was answered %s", codeName(r.ErrorCode))
			}
			switch r.ErrorCode {
			case 0:
				a.id, a.generation, a.leader = r.MemberID, r.Generation, r.LeaderID == r.MemberID && !r.SkipAssignment
				a.members = nil
				for _, o := range r.Members {
					a.members = append(a.members, o.MemberID)
				}
			case kerr.MemberIDRequired.Code:
				a.id = r.MemberID
			case kerr.CoordinatorLoadInProgress.Code:
			default:
				a.id, a.generation = "", -1
			}
		case *kmsg.SyncGroupResponse:
			if r.ErrorCode == kerr.UnknownMemberID.Code || r.ErrorCode == kerr.FencedInstanceID.Code {
				a.id = ""
			}
		}
	}
	h.said = nil
}

func (h *history) join(a *actor) {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version = int16(h.r.IntN(10))
	if a.instance != nil && r.Version < 5 {
		r.Version = 9
	}
	r.Group, r.MemberID, r.InstanceID = a.group, a.id, a.instance
	r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 6000+int32(h.r.IntN(20000)), int32(h.r.IntN(30000))
	r.ProtocolType = "consumer"
	for _, name := range []string{"range", "sticky", "own"}[h.r.IntN(2):] {
		r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: []byte{byte(h.r.IntN(3))}})
	}
	h.run(h.m.Join(h.nowMs, h.ask(a), Client{ID: a.client, Host: "/h"}, r))
}

func (h *history) sync(a *actor) {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version, r.Group, r.MemberID, r.InstanceID, r.Generation = 5, a.group, a.id, a.instance, a.generation
	if a.leader {
		for _, id := range a.members {
			if h.r.IntN(5) > 0 {
				r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(id)})
			}
		}
	}
	h.run(h.m.Sync(h.nowMs, h.ask(a), r))
}

func (h *history) leave(a *actor) {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Version, r.Group, r.MemberID = int16(h.r.IntN(6)), a.group, a.id
	r.Members = []kmsg.LeaveGroupRequestMember{{MemberID: a.id, InstanceID: a.instance}}
	if h.r.IntN(4) == 0 {
		other := h.actors[h.r.IntN(len(h.actors))]
		r.Members = append(r.Members, kmsg.LeaveGroupRequestMember{MemberID: other.id, InstanceID: other.instance})
	}
	h.run(h.m.Leave(h.nowMs, h.ask(a), r))
}

func (h *history) offsets(a *actor) *Commit {
	c := &Commit{Group: a.group, Member: a.id, Instance: a.instance, Generation: a.generation, Version: int16(h.r.IntN(11)), RetentionMs: -1}
	if h.r.IntN(3) == 0 {
		c.Member, c.Instance, c.Generation = "", nil, -1
	}
	for range h.r.IntN(4) {
		topic := fmt.Sprintf("t%d", h.r.IntN(3))
		c.Offsets = append(c.Offsets, Offset{
			Topic: topic, TopicID: h.topics[topic], Partition: int32(h.r.IntN(3)), Offset: h.r.Int64N(100), LeaderEpoch: -1, Metadata: a.client,
		})
	}
	return c
}

// step does one random thing.
func (h *history) step() {
	a := h.actors[h.r.IntN(len(h.actors))]
	pid := h.r.Int64N(4)
	switch n := h.r.IntN(100); {
	case n < 30:
		h.join(a)
	case n < 50:
		h.sync(a)
	case n < 60:
		r := kmsg.NewPtrHeartbeatRequest()
		r.Group, r.MemberID, r.InstanceID, r.Generation = a.group, a.id, a.instance, a.generation
		h.run(h.m.Heartbeat(h.nowMs, h.ask(a), r))
	case n < 64:
		h.leave(a)
	case n < 74:
		h.run(h.m.Commit(h.nowMs, h.ask(a), h.offsets(a)))
	case n < 81:
		h.run(h.m.TxnCommit(h.nowMs, h.ask(a), coord.Txn{ProducerID: pid}, h.offsets(a)))
	case n < 85:
		h.marker(pid, h.r.IntN(3) > 0)
	case n < 87:
		topic := fmt.Sprintf("t%d", h.r.IntN(3))
		old := h.topics[topic]
		h.topics[topic] = ID{old[0], old[1] + 1}
		h.run(h.m.DeleteTopic(h.nowMs, h.ask(a), topic, old))
	case n < 89:
		h.broken = !h.broken && h.r.IntN(2) == 0
	case n < 90:
		h.crash()
	case n < 91:
		a.id, a.generation = "", -1 // a restarted process
	default:
		h.advance(h.r.Int64N(4000))
	}
	h.learn()
}

// invariants of the soft state.
func (h *history) invariants() {
	h.t.Helper()
	for id, g := range h.m.groups {
		l := g.live
		if l == nil {
			if g.bare() {
				h.t.Fatalf("group %s is nothing and still there", id)
			}
			continue
		}
		switch {
		case (l.state == Empty) != (len(l.members) == 0):
			h.t.Fatalf("group %s is %s with %d members", id, l.state, len(l.members))
		case len(l.members) > h.o.MaxSize:
			h.t.Fatalf("group %s has %d members", id, len(l.members))
		case len(l.members) > 0 && l.byID[l.leader] == nil:
			h.t.Fatalf("group %s is led by %q, no member", id, l.leader)
		case len(l.byID) != len(l.members):
			h.t.Fatalf("group %s has %d members and %d ids", id, len(l.members), len(l.byID))
		case l.state == Stable && g.record.Generation != l.generation:
			h.t.Fatalf("group %s is stable in generation %d, its record is of %d", id, l.generation, g.record.Generation)
		case g.wakeIndex < 0:
			h.t.Fatalf("group %s has members and no deadline", id)
		}
		instances := 0
		for _, o := range l.members {
			if l.byID[o.id] != o {
				h.t.Fatalf("group %s: %s is not found by its id", id, o.id)
			}
			if o.joining != 0 && l.state != PreparingRebalance || o.syncing != 0 && l.state != CompletingRebalance {
				h.t.Fatalf("group %s is %s and member %s waits", id, l.state, o.id)
			}
			if o.instance != nil {
				instances++
				if l.instance[*o.instance] != o {
					h.t.Fatalf("group %s: %s is not found by its instance", id, o.id)
				}
			}
		}
		if instances != len(l.instance) {
			h.t.Fatalf("group %s has %d static members and %d instances", id, instances, len(l.instance))
		}
	}
}

// TestRandomHistories: whatever happens, appends that fail and crashes included,
// the machine is what its log says, its invariants hold, nobody waits for ever,
// and every prefix and every compacted form of the log loads.
func TestRandomHistories(t *testing.T) {
	steps, seeds := 1500, 40
	if testing.Short() {
		seeds = 8
	}
	for i := range seeds {
		seed := uint64(i) + 1
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, seed)
			for n := range steps {
				h.step()
				h.invariants()
				if n%50 == 0 {
					h.same(t)
				}
			}
			h.same(t)
			h.broken = false
			h.advance(3_600_000)
			h.learn()
			h.same(t)
			if len(h.parked) > 0 {
				t.Errorf("%d callers were never answered", len(h.parked))
			}
			for id, g := range h.m.groups {
				if g.live != nil {
					t.Errorf("group %s has members an hour after the last heartbeat", id)
				}
			}
			for n := 0; n < len(h.log); n += 1 + n/40 {
				if _, err := h.load(h.log[:n]); err != nil {
					t.Fatalf("the first %d records do not load: %v", n, err)
				}
			}
			for range 20 {
				h.compacted()
			}
		})
	}
}

// compacted removes from the log what a cleaner may remove, at random, and loads
// the rest: it must give the same state.
func (h *history) compacted() {
	h.t.Helper()
	dirty := h.r.IntN(len(h.log) + 1) // cleaned below this
	ended := map[int64]bool{}
	for i := len(h.log) - 1; i >= 0; i-- { // never past the last stable offset
		if e := h.log[i]; e.marker != nil {
			ended[e.marker.ProducerID] = true
		} else if e.r.Transactional && !ended[e.r.ProducerID] {
			dirty = min(dirty, i)
		}
	}
	dropped := map[int]bool{}
	last := map[string]int{}
	outcome := map[int64]bool{}
	for i := dirty - 1; i >= 0; i-- {
		e := h.log[i]
		if e.marker != nil {
			outcome[e.marker.ProducerID] = e.marker.Commit
			continue
		}
		if commit, ended := outcome[e.r.ProducerID]; e.r.Transactional && ended && !commit {
			dropped[i] = h.r.IntN(4) > 0
			continue
		} else if e.r.Transactional && !ended {
			continue // its marker is not cleaned yet
		}
		if _, newer := last[string(e.r.Key)]; newer {
			dropped[i] = h.r.IntN(4) > 0
		} else {
			last[string(e.r.Key)] = i
		}
	}
	h.dropSettled(dropped, dirty)
	var log []entry
	for i, e := range h.log {
		if !dropped[i] {
			log = append(log, e)
		}
	}
	m, err := h.load(log)
	if err != nil {
		h.t.Fatalf("compacted log does not load: %v", err)
	}
	if got, want := m.Dump(), h.m.Dump(); got != want {
		h.t.Fatalf("compacted log (%d of %d records, cleaned below %d) gives another state\ngot\n%s\nwant\n%s",
			len(log), len(h.log), dirty, got, want)
	}
}

// dropSettled drops markers without data and tombstones of keys that nothing is
// left of before them, as a cleaner does when the delete horizon has passed.
func (h *history) dropSettled(dropped map[int]bool, dirty int) {
	data := map[int64]bool{}
	seen := map[string]bool{}
	for i := range dirty {
		e := h.log[i]
		switch {
		case e.marker != nil:
			if !data[e.marker.ProducerID] {
				dropped[i] = h.r.IntN(2) == 0
			}
			data[e.marker.ProducerID] = false
		case dropped[i]:
		case e.r.Value == nil && !seen[string(e.r.Key)]:
			dropped[i] = h.r.IntN(2) == 0
		default:
			seen[string(e.r.Key)] = true
			if e.r.Transactional {
				data[e.r.ProducerID] = true
			}
		}
	}
}

// TestInstancesKeepTheirLastMember: random joins, restarts and leaves of twenty
// instances; each belongs to the last member that joined with it (G12).
func TestInstancesKeepTheirLastMember(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDriver(Options{InitialRebalanceDelay: -1})
		model := map[string]string{} // instance -> member id
		old := map[string]string{}   // a former id of the instance
		for n := range 400 {
			instance := fmt.Sprintf("i%d", r.IntN(20))
			switch r.IntN(6) {
			case 0, 1, 2: // a new process
				_, a := parse("join c instance=" + instance + " session=1000000 rebalance=1000000")
				d.command(t, "join", a)
				if was, ok := model[instance]; ok {
					old[instance] = was
				}
				model[instance] = fmt.Sprintf("%s-%d", instance, d.ids)
			case 3:
				if id, ok := model[instance]; ok {
					_, a := parse("leave c members=" + id + "@" + instance)
					d.command(t, "leave", a)
					delete(model, instance)
					delete(old, instance)
				}
			case 4: // all join again and the leader assigns
				for _, i := range slices.Sorted(maps.Keys(model)) {
					_, a := parse("join c instance=" + i + " m=" + model[i] + " session=1000000 rebalance=1000000")
					d.command(t, "join", a)
				}
				if g := d.m.groups["g"]; g != nil && g.live != nil {
					_, a := parse(fmt.Sprintf("sync c m=%s gen=%d", g.live.leader, g.live.generation))
					d.command(t, "sync", a)
				}
			case 5:
				if was := old[instance]; was != "" {
					d.take()
					_, a := parse(fmt.Sprintf("heartbeat c m=%s instance=%s gen=%d", was, instance, d.m.groups["g"].generation()))
					d.command(t, "heartbeat", a)
					if got := d.take(); got != "c: heartbeat FENCED_INSTANCE_ID\n" {
						t.Fatalf("seed %d: the old id %s: %s", seed, was, got)
					}
				}
			}
			if n%25 == 24 {
				d.same(t)
			}
			got := map[string]string{}
			if g := d.m.groups["g"]; g != nil && g.live != nil {
				for instance, o := range g.live.instance {
					got[instance] = o.id
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(model) {
				t.Fatalf("seed %d:\ngot  %v\nwant %v", seed, got, model)
			}
		}
	}
}
