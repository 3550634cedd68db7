package group

import (
	"maps"
	"slices"
)

// retention is the search for offsets that nobody needs any more (KIP-211). It is soft
// state: what a search left out, because the records could not be appended or the broker
// stopped, the next one finds.
type retention struct {
	// atMs is when the next search begins; of one under way, when it began.
	atMs int64
	// queue are the groups that the search under way has not looked at yet.
	queue []string
}

// wait puts the next search off.
func (r *retention) wait(untilMs int64) { r.atMs, r.queue = untilMs, nil }

// next gives the groups to look at now, at most max. The search is over when there are none.
func (r *retention) next(groups map[string]*group, nowMs, everyMs int64, max int) []string {
	if nowMs < r.atMs {
		return nil
	}
	if len(r.queue) == 0 {
		r.queue = slices.Sorted(maps.Keys(groups))
	}
	n := min(len(r.queue), max)
	now := r.queue[:n]
	if r.queue = r.queue[n:]; len(r.queue) == 0 {
		r.wait(nowMs + everyMs)
	}
	return now
}

// expired names the offsets whose time has come, sorted. done says that nothing is left
// then for which the group has to be known: no offset, nobody who is in it or about to
// join, no open transaction.
//
// An offset that an open transaction has one for as well stays, whatever the outcome: a
// tombstone would take both.
func (g *group) expired(nowMs, retentionMs int64) (gone []partition, done bool) {
	sinceMs, wanted, ok := g.retained()
	if !ok {
		return nil, false
	}
	for p, c := range g.offsets {
		if !wanted[p.topic] && c.expired(sinceMs, nowMs, retentionMs) && !g.held(p) {
			gone = append(gone, p)
		}
	}
	slices.SortFunc(gone, partition.compare)
	return gone, g.live == nil && len(g.open) == 0 && len(gone) == len(g.offsets)
}

// retained says from when on the retention of all offsets counts at the earliest, and
// of which topics none expires. It is not ok when none does at all:
//
//   - A group without members that has a protocol has been left: its offsets stay for the
//     retention after the last member. Its record has that time, unless it is older than
//     Kafka 2.1; then each commit counts.
//   - A group without a protocol only stores offsets: each commit counts.
//   - Consumers that have work keep what they subscribe to. Of other topics each commit
//     counts, if all subscriptions can be read.
//   - Members in a rebalance, and members of other protocols, keep everything.
func (g *group) retained() (sinceMs int64, wanted map[string]bool, ok bool) {
	switch {
	case g.state() == Empty && g.protocolType() != "":
		return g.record.CurrentStateTimestamp, nil, true
	case g.state() == Empty:
		return 0, nil, true
	case g.state() == Stable && g.live.protocolType == consumerProtocol:
		wanted, ok = g.wanted()
		return 0, wanted, ok
	}
	return 0, nil, false
}

// expired says whether the offset's time has come, in a group whose retention counts from
// sinceMs on. An end that the committer asked for is that, in every group. A commit to a
// group that was left long ago, as of a tool that sets it back, counts by itself.
func (c *committed) expired(sinceMs, nowMs, retentionMs int64) bool {
	if c.expireMs >= 0 {
		return nowMs >= c.expireMs
	}
	return nowMs-max(sinceMs, c.commitMs, 0) >= retentionMs
}

// held says whether an open transaction has an offset for p, of whatever topic id.
func (g *group) held(p partition) bool {
	for _, offsets := range g.open {
		if _, ok := offsets[p]; ok {
			return true
		}
	}
	return false
}
