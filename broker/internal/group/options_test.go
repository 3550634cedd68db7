package group

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestOptionsValidate(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
	for field, o := range map[string]Options{
		"MinSessionTimeout": {MinSessionTimeout: -1},
		"MaxSessionTimeout": {MaxSessionTimeout: time.Second},
		"NewMemberTimeout":  {NewMemberTimeout: -1},
		"MaxSize":           {MaxSize: -1},
		"MaxMetadataBytes":  {MaxMetadataBytes: -1},
		"Retention":         {Retention: -1},
		"RetentionCheck":    {RetentionCheckInterval: time.Microsecond},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestStateNames(t *testing.T) {
	for s, want := range map[State]string{
		Empty: "Empty", PreparingRebalance: "PreparingRebalance", CompletingRebalance: "CompletingRebalance", Stable: "Stable", Dead: "Dead",
	} {
		if s.String() != want {
			t.Errorf("state %d is %q, want %q", s, s, want)
		}
	}
}

// TestSameTopics: what a consumer owned before it was restarted is no reason for
// a rebalance; other topics are.
func TestSameTopics(t *testing.T) {
	subscription := func(version int16, owned bool, topics ...string) []byte {
		v := kmsg.NewConsumerMemberMetadata()
		v.Version, v.Topics, v.Generation = version, topics, 7
		if owned {
			v.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: topics[0], Partitions: []int32{1, 2}}}
		}
		return v.AppendTo(nil)
	}
	for _, c := range []struct {
		name, kind string
		a, b       []byte
		want       bool
	}{
		{"owned partitions", "consumer", subscription(1, true, "a", "b"), subscription(1, false, "a", "b"), true},
		{"order and version", "consumer", subscription(3, false, "b", "a"), subscription(0, false, "a", "b"), true},
		{"another topic", "consumer", subscription(1, false, "a"), subscription(1, false, "a", "b"), false},
		{"other protocols are opaque", "connect", subscription(1, true, "a"), subscription(1, false, "a"), false},
		{"equal bytes", "connect", []byte("x"), []byte("x"), true},
		{"first undecodable", "consumer", []byte("x"), subscription(1, false, "a"), false},
		{"second undecodable", "consumer", subscription(1, false, "a"), []byte("x"), false},
	} {
		if got := sameTopics(c.kind, c.a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
