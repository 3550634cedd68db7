package runner

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace/millrace/connectors"
)

// Start says where a partition begins that the store holds no position for.
type Start int

const (
	// Earliest begins with the oldest record of the log.
	Earliest Start = iota
	// Latest begins with the records that come from now on. The position is
	// stored before the first record is read, so that a crash moves it no
	// further.
	Latest
)

// DefaultClaimTopic is the one-partition topic whose offsets are the epochs.
const DefaultClaimTopic = "__millrace_claims"

// SinkOptions are the settings of a sink. Cluster, Topics and New are required;
// the zero value of every other field is its default.
type SinkOptions struct {
	Cluster connectors.Cluster
	Topics  []string
	// New makes the sink of one task. All tasks must write to the same store
	// under the same name.
	New func(task int) (connectors.TxSink, error)
	// Tasks is the number of tasks in this process, 1..1024. Default 1.
	Tasks int
	// Key and Value decode the records. Default connectors.Bytes.
	Key, Value connectors.Decoder

	// Group is the consumer group. Default "connect-" + the sink's name.
	Group string
	// Instance makes the tasks static members of the group
	// (group.instance.id = Instance + "-" + task): a process that is killed and
	// started again gets its partitions back at once instead of after
	// SessionTimeout. Two live processes must not share it. Default: dynamic.
	Instance string
	// SessionTimeout is how long the group waits for a silent member. Default
	// 45 s.
	SessionTimeout time.Duration
	// ClaimTopic is the topic of claims; it may be shared by all connectors of
	// a cluster. Default DefaultClaimTopic.
	ClaimTopic string

	Isolation connectors.Isolation
	Start     Start
	// AllowWeaker accepts settings that lower the guarantee below what the
	// sink's class can give.
	AllowWeaker bool
	// StopOnReject stops the connector at a record that cannot be decoded or
	// stored, instead of putting it into the store's table of rejects.
	StopOnReject bool

	// MaxRecords, MaxBytes and Linger end a batch: whichever comes first.
	// Defaults 5000, 4 MiB, 100 ms.
	MaxRecords int
	MaxBytes   int
	Linger     time.Duration

	// CallTimeout is the deadline of one call to the sink. Default 30 s.
	CallTimeout time.Duration
	// RetryMin and RetryMax bound the back-off between attempts. Defaults
	// 100 ms and 10 s.
	RetryMin, RetryMax time.Duration
	// GiveUpAfter stops the connector when a batch could not be stored for
	// that long. Default: never.
	GiveUpAfter time.Duration
	// StopTimeout is how long a stop waits for the commit in hand. Default 10 s.
	StopTimeout time.Duration
	// MirrorEvery is how often positions are copied to the group's committed
	// offsets and the log's end is asked for, for lag displays. Default 1 s.
	MirrorEvery time.Duration

	Logger *slog.Logger // default: nothing is logged
}

func (o SinkOptions) withDefaults() SinkOptions {
	or(&o.Tasks, 1)
	or(&o.SessionTimeout, 45*time.Second)
	or(&o.ClaimTopic, DefaultClaimTopic)
	or(&o.MaxRecords, 5000)
	or(&o.MaxBytes, 4<<20)
	or(&o.Linger, 100*time.Millisecond)
	or(&o.CallTimeout, 30*time.Second)
	or(&o.RetryMin, 100*time.Millisecond)
	or(&o.RetryMax, 10*time.Second)
	or(&o.StopTimeout, 10*time.Second)
	or(&o.MirrorEvery, time.Second)
	if o.Key == nil {
		o.Key = connectors.Bytes
	}
	if o.Value == nil {
		o.Value = connectors.Bytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func or[T comparable](field *T, def T) {
	var zero T
	if *field == zero {
		*field = def
	}
}

// Validate names every field that is wrong and its limit.
func (o SinkOptions) Validate() error {
	var v violations
	o = o.withDefaults()
	v.add(o.Cluster != nil, "Cluster: required")
	v.add(o.New != nil, "New: required")
	v.add(len(o.Topics) > 0, "Topics: at least one is required")
	for i, t := range o.Topics {
		v.add(t != "", "Topics[%d]: empty", i)
	}
	v.add(o.Tasks >= 1 && o.Tasks <= 1024, "Tasks: %d is outside 1..1024", o.Tasks)
	v.add(o.Isolation == connectors.ReadCommitted || o.Isolation == connectors.ReadUncommitted, "Isolation: no level %d", int(o.Isolation))
	v.add(o.Start == Earliest || o.Start == Latest, "Start: %d is neither Earliest nor Latest", int(o.Start))
	v.add(o.MaxRecords >= 1 && o.MaxRecords <= 1_000_000, "MaxRecords: %d is outside 1..1000000", o.MaxRecords)
	v.add(o.MaxBytes >= 1 && o.MaxBytes <= 1<<30, "MaxBytes: %d is outside 1..%d", o.MaxBytes, 1<<30)
	v.positive("Linger", o.Linger, time.Hour)
	v.positive("SessionTimeout", o.SessionTimeout, 30*time.Minute)
	v.positive("CallTimeout", o.CallTimeout, time.Hour)
	v.positive("RetryMin", o.RetryMin, time.Hour)
	v.positive("RetryMax", o.RetryMax, time.Hour)
	v.add(o.RetryMin <= o.RetryMax, "RetryMin: %v is above RetryMax %v", o.RetryMin, o.RetryMax)
	v.positive("StopTimeout", o.StopTimeout, time.Hour)
	v.positive("MirrorEvery", o.MirrorEvery, time.Hour)
	v.add(o.GiveUpAfter >= 0, "GiveUpAfter: %v is negative", o.GiveUpAfter)
	return v.err("runner")
}

// violations collects what is wrong with a struct of options.
type violations struct{ errs []error }

func (v *violations) add(ok bool, format string, args ...any) {
	if !ok {
		v.errs = append(v.errs, fmt.Errorf(format, args...))
	}
}

func (v *violations) positive(field string, d, limit time.Duration) {
	v.add(d > 0 && d <= limit, "%s: %v is outside 0..%v", field, d, limit)
}

func (v *violations) err(what string) error {
	if len(v.errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", connectors.ErrConfig, what, errors.Join(v.errs...))
}
