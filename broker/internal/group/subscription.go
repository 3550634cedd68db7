package group

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumerProtocol is the protocol type of consumers, the only one whose
// subscriptions are not opaque to the broker.
const consumerProtocol = "consumer"

// sameTopics says whether two subscriptions ask for the same. Of a consumer's
// only the topics count: what else is in it, like the partitions it owned, is not
// the same after a restart and asks for nothing.
func sameTopics(protocolType string, a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if protocolType != consumerProtocol {
		return false
	}
	x, ok := subscribed(a)
	if !ok {
		return false
	}
	y, ok := subscribed(b)
	return ok && slices.Equal(x, y)
}

// subscribed gives the topics of a consumer's subscription, sorted.
func subscribed(metadata []byte) ([]string, bool) {
	var v kmsg.ConsumerMemberMetadata
	if err := v.ReadFrom(metadata); err != nil {
		return nil, false
	}
	slices.Sort(v.Topics)
	return slices.Compact(v.Topics), true
}
