package group

import (
	"fmt"
	"time"
)

// Options are the limits of a machine. The zero value has Kafka's defaults.
type Options struct {
	// MinSessionTimeout and MaxSessionTimeout bound what members may ask for:
	// 6 s and 30 min.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// InitialRebalanceDelay is how long the first rebalance of an empty group
	// waits for more members: 3 s. Negative: not at all.
	InitialRebalanceDelay time.Duration
	// NewMemberTimeout is how long a member that was never in a generation may
	// wait for one: 5 min.
	NewMemberTimeout time.Duration
	// MaxSize bounds the members of a group. Zero: no bound.
	MaxSize int
	// MaxMetadataBytes bounds the metadata of a committed offset: 4096.
	MaxMetadataBytes int
	// Retention is how long offsets are kept that nobody needs any more: 7 days. Of a
	// group that was left it counts from when the last member was gone, otherwise from the
	// commit, and not at all for what consumers in the group subscribe to.
	Retention time.Duration
	// RetentionCheckInterval is how long it is from one search for such offsets to the
	// next, and from the load to the first: 10 min.
	RetentionCheckInterval time.Duration
	// Gone says whether a topic id is that of a deleted topic. Offsets of such that
	// are found in the log, because the broker stopped before it could remove them,
	// are removed when it is loaded. nil: none is.
	Gone func(ID) bool
}

// Validate names the field that makes no sense.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.MinSessionTimeout < time.Millisecond:
		return fmt.Errorf("group: MinSessionTimeout is %v, must be at least 1ms", o.MinSessionTimeout)
	case o.MaxSessionTimeout < o.MinSessionTimeout:
		return fmt.Errorf("group: MaxSessionTimeout is %v, must be at least MinSessionTimeout, %v", o.MaxSessionTimeout, o.MinSessionTimeout)
	case o.NewMemberTimeout < time.Millisecond:
		return fmt.Errorf("group: NewMemberTimeout is %v, must be at least 1ms", o.NewMemberTimeout)
	case o.MaxSize < 0:
		return fmt.Errorf("group: MaxSize is %d, must be at least 0 (0: no bound)", o.MaxSize)
	case o.Retention < time.Millisecond:
		return fmt.Errorf("group: Retention is %v, must be at least 1ms", o.Retention)
	case o.RetentionCheckInterval < time.Millisecond:
		return fmt.Errorf("group: RetentionCheckInterval is %v, must be at least 1ms", o.RetentionCheckInterval)
	case o.MaxMetadataBytes < 0:
		return fmt.Errorf("group: MaxMetadataBytes is %d, must be at least 0", o.MaxMetadataBytes)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.MinSessionTimeout == 0 {
		o.MinSessionTimeout = 6 * time.Second
	}
	if o.MaxSessionTimeout == 0 {
		o.MaxSessionTimeout = 30 * time.Minute
	}
	if o.InitialRebalanceDelay == 0 {
		o.InitialRebalanceDelay = 3 * time.Second
	}
	o.InitialRebalanceDelay = max(o.InitialRebalanceDelay, 0)
	if o.NewMemberTimeout == 0 {
		o.NewMemberTimeout = 5 * time.Minute
	}
	if o.Retention == 0 {
		o.Retention = 7 * 24 * time.Hour
	}
	if o.RetentionCheckInterval == 0 {
		o.RetentionCheckInterval = 10 * time.Minute
	}
	if o.MaxMetadataBytes == 0 {
		o.MaxMetadataBytes = 4096
	}
	return o
}
