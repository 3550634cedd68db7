package streams

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/state"
)

// Opt is an option of an operator, or of the application. An option that means
// nothing to the operator it is given to is reported when the topology is
// built.
type Opt struct {
	name  string
	apply func(*options)
}

type options struct {
	as        string
	key, val  any // serde.Serde of the type the operator asks for
	inMemory  bool
	retention time.Duration
	grace     time.Duration
	strict    bool
	onError   task.Handler
	uses      []StoreRef

	maxRecords, maxBytes int
	failFull             bool
	history              time.Duration
	timestamps           any // func(*Record[K, V], time.Time) time.Time
	cached               int
	engine               state.Engine
	unlogged             bool
	changelog            map[string]string
	lateTo               string
	begin                topology.Begin
	invalid              TimePolicy
	requireNames         bool
	partitions           int32
	partition            any // func(*Record[K, V], int32) int32
}

// As names a node, and with it its store and internal topics. Without it the
// name is the path from the source. Name what keeps state: its name then
// survives every change of the topology before it.
func As(name string) Opt { return Opt{"As", func(o *options) { o.as = name }} }

// KeySerde sets the serde of the keys that the operator reads or writes.
func KeySerde[T any](s serde.Serde[T]) Opt { return Opt{"KeySerde", func(o *options) { o.key = s }} }

// ValSerde sets the serde of the values that the operator reads or writes.
func ValSerde[T any](s serde.Serde[T]) Opt { return Opt{"ValSerde", func(o *options) { o.val = s }} }

// InMemory keeps the store of the operator in memory. It is as safe as on disk:
// it is restored from its changelog.
func InMemory() Opt { return Opt{"InMemory", func(o *options) { o.inMemory = true }} }

// Retention keeps the rows of a windowed store for at least d of stream time,
// counted from the window's start. The default and the minimum is the window's
// size plus its grace.
func Retention(d time.Duration) Opt { return Opt{"Retention", func(o *options) { o.retention = d }} }

// Grace keeps a window open for late records until stream time is d past its
// end. The default is 0.
func Grace(d time.Duration) Opt { return Opt{"Grace", func(o *options) { o.grace = d }} }

// OnError sets what happens to records that fail: bytes that do not decode, a
// Try function that returns an error, any function that panics, a value that
// does not encode. Given to an operator it counts there; given to New, wherever
// no operator says otherwise. Without a handler the application fails.
//
// The failure has the attempt's number, so a handler may decide by it, or leave
// the counting to Retry.
func OnError(handler func(context.Context, Failure) Decision) Opt {
	return Opt{"OnError", func(o *options) { o.onError = handler }}
}

// LateTo writes records that are late for a windowed aggregation, or a Strict join
// of streams, to a topic, in the same transaction, besides counting them. It is the
// source record as it came that is written, with headers __streams.late.topic,
// partition, offset, node and stream.time.
func LateTo(topic string) Opt { return Opt{"LateTo", func(o *options) { o.lateTo = topic }} }

// Cached merges the updates of a table between commits: what follows gets of each
// key only the latest, in order of last changes, and of a row that was made and
// deleted meanwhile nothing. More than that many keys are not held back: the one
// that is unchanged the longest goes first. Without it each update goes out. The
// store itself is not behind the cache: look-ups see every update.
func Cached(keys int) Opt { return Opt{"Cached", func(o *options) { o.cached = keys }} }

// FromLatest begins a topic that the application has never committed an offset of at
// its end. Without it reading begins at the start.
func FromLatest() Opt { return beginAt("FromLatest", topology.Begin{At: topology.BeginEnd}) }

// FromAgo begins a topic that the application has never committed an offset of with the
// first record that is not older than d when its task first starts.
func FromAgo(d time.Duration) Opt {
	return beginAt("FromAgo", topology.Begin{At: topology.BeginAgo, Ago: d})
}

// FromCommitted reads a topic only where the application has committed an offset before,
// or someone has for it: a partition without one ends the application with an error, and
// so does an offset whose records have been deleted.
func FromCommitted() Opt {
	return beginAt("FromCommitted", topology.Begin{At: topology.BeginNowhere})
}

func beginAt(name string, b topology.Begin) Opt { return Opt{name, func(o *options) { o.begin = b }} }

// TimestampBy takes the time of a source's records from their contents. partition
// is the highest time so far of the topic's partition, before 1970 if there is none.
// A result before 1970 drops the record, counted as "no time". Records take their
// turn among a task's topics by this time.
func TimestampBy[K, V any](f func(r *Record[K, V], partition time.Time) time.Time) Opt {
	return Opt{"TimestampBy", func(o *options) { o.timestamps = f }}
}

// TimePolicy is what becomes of records without a usable time; see InvalidTime.
type TimePolicy operator.InvalidTime

// The policies of InvalidTime.
const (
	// TimeFails makes such a record a failure in the phase PhaseDecode, for OnError
	// to decide.
	TimeFails = TimePolicy(operator.InvalidFails)
	// TimeSkips drops it, counted as "no time".
	TimeSkips = TimePolicy(operator.InvalidSkips)
	// TimeOfPartition gives it the highest time so far of its partition of the
	// topic; before there is one it is a failure.
	TimeOfPartition = TimePolicy(operator.InvalidIsPartitions)
)

// InvalidTime says what becomes of records of a source whose time is before 1970, be it
// their own or that of TimestampBy. Without it a record's own time fails, and one from
// TimestampBy drops the record, counted.
func InvalidTime(p TimePolicy) Opt { return Opt{"InvalidTime", func(o *options) { o.invalid = p }} }

// Use lets the functions of an operator, or a processor, reach declared stores
// and timers through their context.
func Use(stores ...StoreRef) Opt {
	return Opt{"Use", func(o *options) { o.uses = append(o.uses, stores...) }}
}

// StoreRef is a declared store, or timers; see App.Store.
type StoreRef interface{ declared() any }

// collect applies options and says which of them are not among the allowed
// names.
func collect(opts []Opt, allowed string) (options, error) {
	var o options
	var bad []string
	for _, opt := range opts {
		switch {
		case opt.apply == nil: // the zero Opt does nothing
		case !strings.Contains(" "+allowed+" ", " "+opt.name+" "):
			bad = append(bad, opt.name)
		default:
			opt.apply(&o)
		}
	}
	if bad != nil {
		return o, fmt.Errorf("option %s has no effect here; possible: %s", strings.Join(bad, ", "), strings.ReplaceAll(allowed, " ", ", "))
	}
	return o, nil
}

// Which options mean something where.
const (
	forApp         = "OnError RequireNames"
	forSource      = "As KeySerde ValSerde OnError TimestampBy InvalidTime FromLatest FromAgo FromCommitted"
	forTable       = "As KeySerde ValSerde InMemory StoreIn Logged ChangelogConfig Versioned OnError"
	forStep        = "As OnError Use"
	forGroup       = "As KeySerde ValSerde OnError"
	forAggregate   = "As KeySerde ValSerde InMemory StoreIn Logged ChangelogConfig Cached OnError"
	forGlobal      = "As KeySerde ValSerde"
	forWindows     = "Grace"
	forWindowed    = "As KeySerde ValSerde InMemory StoreIn Logged ChangelogConfig Retention LateTo Cached OnError"
	forClose       = "As"
	forStore       = "KeySerde ValSerde InMemory StoreIn Logged ChangelogConfig Retention"
	forVersioned   = "KeySerde ValSerde InMemory StoreIn Logged ChangelogConfig"
	forTimed       = "KeySerde ValSerde InMemory StoreIn Logged ChangelogConfig"
	forProcess     = "As OnError Use"
	forTimers      = "KeySerde InMemory StoreIn Logged ChangelogConfig"
	forSuppress    = "As InMemory StoreIn Logged ChangelogConfig OnError MaxRecords MaxBytes FailWhenFull"
	forChild       = "As"
	forJoin        = "As OnError"
	forTableJoin   = "As Grace InMemory StoreIn Logged ChangelogConfig OnError"
	forForeign     = "As ValSerde InMemory StoreIn Logged ChangelogConfig OnError"
	forJoinWindow  = "Grace Strict Retention"
	forStreamJoin  = "As KeySerde InMemory StoreIn Logged ChangelogConfig LateTo OnError"
	forRepartition = "As KeySerde ValSerde Partitions PartitionBy OnError"
	forSink        = "As KeySerde ValSerde PartitionBy OnError"
)
