package runner

import (
	"log/slog"
	"time"

	"github.com/millrace/millrace/connectors"
)

// DefaultPositionTopic is the compacted one-partition topic that holds how far
// each source has come.
const DefaultPositionTopic = "__millrace_source_offsets"

// Points of a source's loop, announced by connectors.Reach on the context given
// to Run: for each part, in this order, the last four once per unit.
const (
	PointClaimed  = "source/claimed"  // predecessors are fenced, the position is not read yet
	PointOpened   = "source/opened"   // the position is read and the upstream open
	PointRead     = "source/read"     // a unit was read, nothing was sent
	PointSent     = "source/sent"     // records and position were handed to the producer
	PointDurable  = "source/durable"  // the transaction is committed
	PointUpstream = "source/upstream" // the upstream was told
)

// SourceOptions are the settings of a source. Cluster and Source are required.
type SourceOptions struct {
	Cluster connectors.Cluster
	Source  connectors.Source
	// Tasks is how many parts are read at the same time, 1..1024. Default 1.
	Tasks int
	// PositionTopic holds the stored positions; it may be shared by all
	// sources of a cluster. Default DefaultPositionTopic.
	PositionTopic string
	// TransactionTimeout is how long the cluster waits for a unit to be
	// committed before it aborts it. Default 10 s.
	TransactionTimeout time.Duration
	// RetryMin and RetryMax bound the back-off between attempts. Defaults
	// 100 ms and 10 s.
	RetryMin, RetryMax time.Duration
	// StopTimeout is how long a stop waits for the unit in hand. Default 10 s.
	StopTimeout time.Duration
	// OnProgress is called after each unit, by the goroutine of its part.
	OnProgress func(Progress)
	Logger     *slog.Logger // default: nothing is logged
}

// Progress tells how far a part of a source is.
type Progress struct {
	Part    string
	Records int64 // sent since the start of this process
	Read    int64 // in the source's own measure, see connectors.Unit
	Total   int64
	Done    bool
}

func (o SourceOptions) withDefaults() SourceOptions {
	or(&o.Tasks, 1)
	or(&o.PositionTopic, DefaultPositionTopic)
	or(&o.TransactionTimeout, 10*time.Second)
	or(&o.RetryMin, 100*time.Millisecond)
	or(&o.RetryMax, 10*time.Second)
	or(&o.StopTimeout, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate names every field that is wrong and its limit.
func (o SourceOptions) Validate() error {
	var v violations
	o = o.withDefaults()
	v.add(o.Cluster != nil, "Cluster: required")
	v.add(o.Source != nil, "Source: required")
	v.add(o.Tasks >= 1 && o.Tasks <= 1024, "Tasks: %d is outside 1..1024", o.Tasks)
	v.positive("TransactionTimeout", o.TransactionTimeout, 15*time.Minute)
	v.positive("RetryMin", o.RetryMin, time.Hour)
	v.positive("RetryMax", o.RetryMax, time.Hour)
	v.add(o.RetryMin <= o.RetryMax, "RetryMin: %v is above RetryMax %v", o.RetryMin, o.RetryMax)
	v.positive("StopTimeout", o.StopTimeout, time.Hour)
	if o.Source != nil {
		v.add(o.Source.Spec().Name != "", "Source: its Spec has no Name")
	}
	return v.err("runner")
}
