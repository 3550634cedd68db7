package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Balancer decides who gets what. All members of a group have the same one.
type Balancer interface {
	// Protocol names the balancer; the coordinator keeps members with
	// different ones apart.
	Protocol() string
	// Metadata is what this member tells the leader, in the bytes of Kafka's
	// consumer protocol subscription, which brokers and tools read too.
	Metadata() []byte
	// Balance is called on the leader. It returns each member's assignment by
	// member id.
	Balance(ctx context.Context, members []Peer) (map[string][]byte, error)
}

// Peer is a member as the leader sees it.
type Peer struct {
	ID       string
	Instance string
	Metadata []byte
}

// MemberOptions describe a membership.
type MemberOptions struct {
	// Group is the group's id. Required.
	Group string
	// Instance is the group.instance.id: with it, a restarted process takes
	// the place of its predecessor at once and fences it (KIP-345).
	Instance string
	// Session is after how long without a heartbeat the member is dropped.
	// Default 45 s; brokers allow 6 s to 30 min.
	Session time.Duration
	// Rebalance is how long the group waits for a member to join again.
	// Default 60 s.
	Rebalance time.Duration
	// Heartbeat is the interval of heartbeats, by which a rebalance is
	// noticed. Default 3 s, and never more than a third of Session.
	Heartbeat time.Duration
	// Balancer decides who gets what. Required.
	Balancer Balancer
	// Cooperative says that the balancer gives to nobody else what a member says
	// that it holds, until it no longer says so (KIP-429). Then a generation that
	// ended before this member knew its share has changed nothing for it.
	Cooperative bool
}

// Validate names the field that is wrong.
func (o MemberOptions) Validate() error {
	switch {
	case o.Group == "":
		return errors.New("session: MemberOptions.Group is empty")
	case o.Balancer == nil:
		return errors.New("session: MemberOptions.Balancer is nil")
	case o.Session < 0 || o.Rebalance < 0 || o.Heartbeat < 0:
		return errors.New("session: MemberOptions: Session, Rebalance and Heartbeat must not be negative")
	}
	return nil
}

// Member is a membership in a group. Join, Leave and Close are for one
// goroutine; a goroutine of its own sends heartbeats between a Join and the
// next.
type Member struct {
	cluster *Cluster
	options MemberOptions
	id      string // member id the coordinator gave
	last    Generation
	stop    func() // of the heartbeat goroutine; waits for it

	mu      sync.Mutex
	state   membership
	changed chan struct{} // closed when state leaves stable
}

type membership int

const (
	outside membership = iota
	stable
	rebalancing // the group wants everybody to join again
	lost        // the group has gone on without this member
	fenced      // another process has this instance id
)

// NewMember makes a member that has not joined yet.
func (c *Cluster) NewMember(o MemberOptions) (*Member, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Session == 0 {
		o.Session = 45 * time.Second
	}
	if o.Rebalance == 0 {
		o.Rebalance = time.Minute
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 3 * time.Second
	}
	o.Heartbeat = min(o.Heartbeat, o.Session/3)
	return &Member{cluster: c, options: o, changed: make(chan struct{}), stop: func() {}}, nil
}

// Joined is the outcome of a Join.
type Joined struct {
	Generation Generation
	// Assignment is what the leader's balancer made for this member.
	Assignment []byte
	// Continued says that no generation went by without this member: what it
	// owned before and still owns, nobody else has had in between.
	Continued bool
}

// Changed is closed when the member has to join again: because the group is
// rebalancing, or because the group has dropped it. Each Join makes a new one.
func (m *Member) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Lost reports that the group has dropped the member, so that commits of its
// generation will fail.
func (m *Member) Lost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state == lost || m.state == fenced
}

// Join joins, or joins again, and waits for the assignment. The owner has
// committed what it wants to keep before. It returns [ErrFenced] when another
// process has the same instance id.
func (m *Member) Join(ctx context.Context) (Joined, error) {
	m.stop()
	m.stop = func() {}
	m.mu.Lock()
	if m.state == fenced {
		m.mu.Unlock()
		return Joined{}, m.fencedError()
	}
	m.mu.Unlock()
	for {
		joined, again, err := m.tryJoin(ctx)
		if err != nil {
			return Joined{}, fmt.Errorf("session: join group %s: %w", m.options.Group, err)
		}
		if !again {
			m.last = joined.Generation
			m.start()
			return joined, nil
		}
		if ctx.Err() != nil {
			return Joined{}, ctx.Err()
		}
	}
}

// tryJoin is one round of JoinGroup and SyncGroup; again asks for another one.
func (m *Member) tryJoin(ctx context.Context) (joined Joined, again bool, err error) {
	resp, err := m.joinGroup(ctx)
	if err != nil {
		return Joined{}, false, err
	}
	switch kerr.ErrorForCode(resp.ErrorCode) {
	case nil:
	case kerr.MemberIDRequired:
		m.id = resp.MemberID
		return Joined{}, true, nil
	case kerr.UnknownMemberID, kerr.IllegalGeneration:
		m.id, m.last = "", Generation{}
		return Joined{}, true, nil
	case kerr.RebalanceInProgress:
		return Joined{}, true, nil
	case kerr.FencedInstanceID:
		return Joined{}, false, m.fence()
	default:
		return Joined{}, false, kerr.ErrorForCode(resp.ErrorCode)
	}
	before := m.last
	m.id = resp.MemberID
	gen := Generation{Group: m.options.Group, Member: m.id, Instance: m.options.Instance, ID: resp.Generation}
	continued := before.Member != "" && before.Member == gen.Member && gen.ID-before.ID <= 1
	assignment, again, err := m.syncGroup(ctx, resp)
	if err != nil || again {
		if again && continued && m.options.Cooperative && m.last.Member != "" {
			m.last = gen
		}
		return Joined{}, again, err
	}
	return Joined{Generation: gen, Assignment: assignment, Continued: continued}, false, nil
}

func (m *Member) joinGroup(ctx context.Context) (*kmsg.JoinGroupResponse, error) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = m.options.Group, m.id, "consumer"
	req.SessionTimeoutMillis = int32(m.options.Session.Milliseconds())
	req.RebalanceTimeoutMillis = int32(m.options.Rebalance.Milliseconds())
	if m.options.Instance != "" {
		req.InstanceID = &m.options.Instance
	}
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = m.options.Balancer.Protocol(), m.options.Balancer.Metadata()
	req.Protocols = append(req.Protocols, p)
	var resp *kmsg.JoinGroupResponse
	err := m.cluster.retry(ctx, func() (err error) {
		if resp, err = req.RequestWith(ctx, m.cluster.client); err != nil {
			return err
		}
		if e := kerr.TypedErrorForCode(resp.ErrorCode); e != nil && repeatable(e) {
			return e
		}
		return nil
	})
	return resp, err
}

// syncGroup sends the assignments, if this member leads, and gets its own.
func (m *Member) syncGroup(ctx context.Context, join *kmsg.JoinGroupResponse) (assignment []byte, again bool, err error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.Generation, req.MemberID = m.options.Group, join.Generation, join.MemberID
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr(m.options.Balancer.Protocol())
	if m.options.Instance != "" {
		req.InstanceID = &m.options.Instance
	}
	if join.LeaderID == join.MemberID && !join.SkipAssignment {
		if req.GroupAssignment, err = m.balance(ctx, join.Members); err != nil {
			return nil, false, err
		}
	}
	var resp *kmsg.SyncGroupResponse
	err = m.cluster.retry(ctx, func() (err error) {
		if resp, err = req.RequestWith(ctx, m.cluster.client); err != nil {
			return err
		}
		if e := kerr.TypedErrorForCode(resp.ErrorCode); e != nil && repeatable(e) {
			return e
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	switch kerr.ErrorForCode(resp.ErrorCode) {
	case nil:
		return resp.MemberAssignment, false, nil
	case kerr.RebalanceInProgress:
		return nil, true, nil
	case kerr.UnknownMemberID, kerr.IllegalGeneration:
		m.id, m.last = "", Generation{}
		return nil, true, nil
	case kerr.FencedInstanceID:
		return nil, false, m.fence()
	}
	return nil, false, kerr.ErrorForCode(resp.ErrorCode)
}

func (m *Member) balance(ctx context.Context, members []kmsg.JoinGroupResponseMember) ([]kmsg.SyncGroupRequestGroupAssignment, error) {
	peers := make([]Peer, len(members))
	for i, rm := range members {
		peers[i] = Peer{ID: rm.MemberID, Metadata: rm.ProtocolMetadata}
		if rm.InstanceID != nil {
			peers[i].Instance = *rm.InstanceID
		}
	}
	plan, err := m.options.Balancer.Balance(ctx, peers)
	if err != nil {
		return nil, fmt.Errorf("balance: %w", err)
	}
	var out []kmsg.SyncGroupRequestGroupAssignment
	for _, p := range peers {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = p.ID, plan[p.ID]
		out = append(out, a)
	}
	return out, nil
}

func (m *Member) fence() error {
	m.set(fenced)
	return m.fencedError()
}

func (m *Member) fencedError() error {
	return fmt.Errorf("%w: another process is member of group %s with instance id %s", ErrFenced, m.options.Group, m.options.Instance)
}

// set changes the state and tells whoever waits.
func (m *Member) set(s membership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == stable && s != stable {
		close(m.changed)
	}
	if s == stable {
		m.changed = make(chan struct{})
	}
	m.state = s
}

// start begins the heartbeats of the current generation.
func (m *Member) start() {
	m.set(stable)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	gen := m.last
	go func() {
		defer close(done)
		m.beat(ctx, gen)
	}()
	m.stop = func() {
		cancel()
		<-done
	}
}

// beat sends heartbeats until the generation is over or ctx ends.
func (m *Member) beat(ctx context.Context, gen Generation) {
	tick := time.NewTicker(m.options.Heartbeat)
	defer tick.Stop()
	heard := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		state, answered := m.heartbeat(ctx, gen)
		if answered {
			heard = time.Now()
		}
		switch {
		case state != stable:
			m.set(state)
			return
		case time.Since(heard) > m.options.Session:
			// The coordinator has dropped this member by now.
			m.set(lost)
			return
		}
	}
}

// heartbeat sends one; without an answer the state stays as it is.
func (m *Member) heartbeat(ctx context.Context, gen Generation) (s membership, answered bool) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation, req.MemberID = gen.Group, gen.ID, gen.Member
	if gen.Instance != "" {
		req.InstanceID = &gen.Instance
	}
	resp, err := req.RequestWith(ctx, m.cluster.client)
	if err != nil {
		return stable, false
	}
	switch kerr.ErrorForCode(resp.ErrorCode) {
	case nil:
		return stable, true
	case kerr.RebalanceInProgress:
		return rebalancing, true
	case kerr.FencedInstanceID:
		return fenced, true
	case kerr.UnknownMemberID, kerr.IllegalGeneration:
		return lost, true
	}
	return stable, false
}

// Close stops the heartbeats and stays in the group until its session is over,
// so that a restart within that time finds its place free.
func (m *Member) Close() {
	m.stop()
	m.stop = func() {}
	m.set(outside)
}

// Leave leaves the group at once, so that the others take over.
func (m *Member) Leave(ctx context.Context) error {
	m.Close()
	if m.id == "" {
		return nil
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.options.Group, m.id
	rm := kmsg.NewLeaveGroupRequestMember()
	rm.MemberID = m.id
	if m.options.Instance != "" {
		rm.InstanceID = &m.options.Instance
	}
	req.Members = append(req.Members, rm)
	m.id, m.last = "", Generation{}
	resp, err := req.RequestWith(ctx, m.cluster.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil && !errors.Is(err, kerr.UnknownMemberID) {
		return fmt.Errorf("session: leave group %s: %w", m.options.Group, err)
	}
	return nil
}
