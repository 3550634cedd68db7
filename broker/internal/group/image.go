package group

import "github.com/twmb/franz-go/pkg/kmsg"

// image is a record of the running group.
func image(l *classic, nowMs int64) *kmsg.GroupMetadataValue {
	v := &kmsg.GroupMetadataValue{
		Version:               metadataValueVersion,
		ProtocolType:          l.protocolType,
		Generation:            l.generation,
		Protocol:              kmsg.StringPtr(l.protocol),
		Leader:                kmsg.StringPtr(l.leader),
		CurrentStateTimestamp: nowMs,
		Members:               make([]kmsg.GroupMetadataValueMember, len(l.members)),
	}
	for i, o := range l.members {
		v.Members[i] = kmsg.GroupMetadataValueMember{
			MemberID:               o.id,
			InstanceID:             o.instance,
			ClientID:               o.clientID,
			ClientHost:             o.host,
			RebalanceTimeoutMillis: int32(o.rebalanceMs),
			SessionTimeoutMillis:   int32(o.sessionMs),
			Subscription:           o.metadata(l.protocol),
			Assignment:             o.assignment,
		}
	}
	return v
}
