package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Dump writes the durable state down, in one form only: two machines with the
// same state give the same text.
func (m *Machine) Dump() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(m.groups)) {
		g := m.groups[id]
		if g.bare() {
			continue
		}
		fmt.Fprintf(&b, "group %q\n", id)
		if g.record != nil {
			dumpRecord(&b, g.record)
		}
		dumpOffsets(&b, "offset", g.offsets)
		for _, pid := range slices.Sorted(maps.Keys(g.open)) {
			dumpOffsets(&b, fmt.Sprintf("open producer=%d", pid), g.open[pid])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.foreign)) {
		fmt.Fprintf(&b, "foreign %x = %x\n", key, m.foreign[key])
	}
	return b.String()
}

func dumpRecord(b *strings.Builder, v *kmsg.GroupMetadataValue) {
	fmt.Fprintf(b, "  metadata type=%q generation=%d protocol=%s leader=%s since=%d\n",
		v.ProtocolType, v.Generation, quoted(v.Protocol), quoted(v.Leader), v.CurrentStateTimestamp)
	members := slices.Clone(v.Members)
	slices.SortFunc(members, func(x, y kmsg.GroupMetadataValueMember) int {
		return strings.Compare(x.MemberID, y.MemberID)
	})
	for _, o := range members {
		fmt.Fprintf(b, "  member %q instance=%s client=%q host=%q session=%d rebalance=%d subscription=%x assignment=%x\n",
			o.MemberID, quoted(o.InstanceID), o.ClientID, o.ClientHost, o.SessionTimeoutMillis,
			o.RebalanceTimeoutMillis, o.Subscription, o.Assignment)
	}
}

func dumpOffsets(b *strings.Builder, title string, offsets map[partition]committed) {
	for _, p := range slices.SortedFunc(maps.Keys(offsets), partition.compare) {
		c := offsets[p]
		fmt.Fprintf(b, "  %s %s-%d = %d epoch=%d metadata=%q commit=%d expire=%d id=%x at=%d\n", title,
			p.topic, p.index, c.offset, c.leaderEpoch, c.metadata, c.commitMs, c.expireMs, c.topicID, c.at)
	}
}

func quoted(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%q", *s)
}
