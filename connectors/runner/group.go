package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors"
)

// event is a change of the assignment.
type event struct {
	gained []connectors.TP
	gone   []connectors.TP
	lost   bool          // the group has dropped this member: do not try to finish anything
	done   chan struct{} // closed when the task has dealt with it
}

// mailbox carries events from the group client's goroutine to the task's. It
// interrupts whatever the task is waiting for.
type mailbox struct {
	mu     sync.Mutex
	events []*event
	wake   chan struct{} // holds one token while there may be events
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) post(e *event) {
	m.mu.Lock()
	m.events = append(m.events, e)
	m.mu.Unlock()
	m.nudge()
}

func (m *mailbox) nudge() {
	select {
	case m.wake <- struct{}{}:
	default: // a token is there already
	}
}

// take empties the mailbox. The token goes first: an event that comes in after
// that leaves a new one.
func (m *mailbox) take() []*event {
	select {
	case <-m.wake:
	default:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.events
	m.events = nil
	return out
}

func (m *mailbox) any() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.events) > 0
}

// drain answers events that nobody will act on any more, until left is closed.
func (m *mailbox) drain(left <-chan struct{}) {
	for {
		for _, e := range m.take() {
			if e.done != nil {
				close(e.done)
			}
		}
		select {
		case <-m.wake:
		case <-left:
			return
		}
	}
}

// interruptible returns a context that ends when an event comes in.
func (m *mailbox) interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-m.wake:
			cancel()
			m.nudge() // the task's own waits see it too
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// member is this task's membership of the consumer group: it assigns, it shows
// positions, and it answers whether we are still in. It reads no records.
type member struct {
	client *kgo.Client
	group  string
	static *string
}

// join starts the membership. Events are posted to the mailbox; a revocation
// waits until the task has let go of the partitions, or until ctx ends.
func join(ctx context.Context, o *SinkOptions, task int, box *mailbox, fatal func(error)) (*member, error) {
	revoke := func(lost bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			e := &event{gone: flatten(m), lost: lost, done: make(chan struct{})}
			if len(e.gone) == 0 {
				return
			}
			box.post(e)
			select {
			case <-e.done:
			case <-ctx.Done():
			}
		}
	}
	opts := append(dial(o.Cluster, fmt.Sprintf("%s-%d", o.Group, task)),
		kgo.ConsumerGroup(o.Group),
		kgo.ConsumeTopics(o.Topics...),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(o.SessionTimeout),
		kgo.HeartbeatInterval(o.SessionTimeout/15),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			box.post(&event{gained: flatten(m)}) // also when empty: then we are in, without work
		}),
		kgo.OnPartitionsRevoked(revoke(false)),
		kgo.OnPartitionsLost(revoke(true)),
		kgo.WithHooks(groupErrors(fatal)),
	)
	m := &member{group: o.Group}
	if o.Instance != "" {
		id := fmt.Sprintf("%s-%d", o.Instance, task)
		m.static = &id
		opts = append(opts, kgo.InstanceID(id))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("%w: group client: %w", connectors.ErrConfig, err)
	}
	client.PauseFetchTopics(o.Topics...) // records come through the task's own reader
	m.client = client
	return m, nil
}

// groupErrors passes on the errors after which a rejoin cannot succeed.
type groupErrors func(error)

// OnGroupManageError is called by the client between attempts to join.
func (f groupErrors) OnGroupManageError(err error) {
	for _, final := range []error{kerr.FencedInstanceID, kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed,
		kerr.InvalidSessionTimeout, kerr.InvalidGroupID, kerr.InconsistentGroupProtocol} {
		if errors.Is(err, final) {
			f(err)
		}
	}
}

// stillIn asks the coordinator whether this member is in the group's present
// generation. A rebalance that is under way takes nothing until the revocation
// has been heard, so it counts as in.
func (m *member) stillIn(ctx context.Context) (bool, error) {
	id, generation := m.client.GroupMetadata()
	if id == "" {
		return false, nil
	}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.group, generation, id, m.static
	resp, err := req.RequestWith(ctx, m.client)
	if err != nil {
		return false, fmt.Errorf("heartbeat of group %s: %w", m.group, err)
	}
	switch err := kerr.ErrorForCode(resp.ErrorCode); {
	case err == nil, errors.Is(err, kerr.RebalanceInProgress):
		return true, nil
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.FencedInstanceID):
		return false, nil
	default:
		return false, fmt.Errorf("heartbeat of group %s: %w", m.group, err)
	}
}

// mirror writes positions as the group's committed offsets, for tools that
// show lag. The answer does not matter: nothing is ever read from there.
func (m *member) mirror(ctx context.Context, at map[connectors.TP]connectors.Position, wait bool) {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for tp, p := range at {
		if offsets[tp.Topic] == nil {
			offsets[tp.Topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[tp.Topic][tp.Partition] = kgo.EpochOffset{Epoch: p.LeaderEpoch, Offset: p.Next}
	}
	if wait {
		m.client.CommitOffsetsSync(ctx, offsets, nil)
		return
	}
	m.client.CommitOffsets(ctx, offsets, nil)
}

// leave ends the membership. A static member stays registered, so that its
// restart gets the same partitions back without a rebalance.
// The error is dropped: a member that could not say goodbye times out.
func (m *member) leave(ctx context.Context) {
	_ = m.client.LeaveGroupContext(ctx)
	m.client.CloseAllowingRebalance()
}

func flatten(m map[string][]int32) []connectors.TP {
	var out []connectors.TP
	for topic, ps := range m {
		for _, p := range ps {
			out = append(out, connectors.TP{Topic: topic, Partition: p})
		}
	}
	slices.SortFunc(out, compareTP)
	return out
}
