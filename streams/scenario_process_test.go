package streams_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace/streams"
)

func init() {
	for _, name := range []string{"punctuate_anchored_stream", "punctuate_anchored_wall", "punctuate_cancelled_wall", "punctuate_several_due",
		"punctuate_stream_time", "punctuate_stream_time_after_record", "punctuate_wall_clock"} {
		scenarioApps[name] = func(app *streams.App, s *scenario) {
			n := app.Store[string, int64]("n")
			in(app).Process(func() streams.Processor[text, text, string, string] { return &punctual{s: s, n: n} }, streams.Use(n)).To("out")
		}
	}
	for _, name := range []string{"vs_delete", "vs_grace_rejects", "vs_history_retention", "vs_in_order", "vs_segment_boundaries"} {
		scenarioApps[name] = func(app *streams.App, s *scenario) {
			store := app.VersionedStore[text, text]("vs", ms(s.Params.HistoryMs))
			for _, topic := range []string{"put", "get", "del"} {
				app.Stream[text, text](topic).Process(func() streams.Processor[text, text, text, string] {
					return &historian{topic: topic, store: store}
				}, streams.Use(store)).To("out")
			}
		}
	}
}

// idle has what a processor without Init and Close needs.
type idle[K, V any] struct{}

func (idle[K, V]) Init(streams.TaskContext, *streams.Emitter[K, V]) error { return nil }
func (idle[K, V]) Close() error                                           { return nil }

// punctual counts records, and tells the count when its timers call it.
type punctual struct {
	idle[string, string]
	s   *scenario
	n   streams.KVRef[string, int64]
	out *streams.Emitter[string, string]
}

func (p *punctual) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	p.out = out
	for _, x := range p.s.Params.Punctuators {
		by := streams.StreamTime
		if x.Time == "wall" {
			by = streams.WallClock
		}
		var cancel func()
		calls := int64(0)
		call := func(c streams.TaskContext, _ time.Time) error {
			n, _, err := p.n.In(c).Get("n")
			out.Emit(x.Name, strconv.FormatInt(n, 10))
			if calls++; calls == x.CancelledInCall {
				cancel()
			}
			return err
		}
		if x.StartMs != nil {
			cancel = out.EveryFrom(time.UnixMilli(*x.StartMs), ms(x.IntervalMs), by, call)
		} else {
			cancel = out.Every(ms(x.IntervalMs), by, call)
		}
	}
	return nil
}

func (p *punctual) Process(c streams.TaskContext, r *streams.Record[text, text]) error {
	n, _, err := p.n.In(c).Get("n")
	if err != nil {
		return err
	}
	if p.s.Params.ForwardsRecords {
		p.out.Emit(*r.Key, *r.Value)
	}
	return p.n.In(c).Put("n", n+1)
}

// historian does what the topic says to a versioned store, and tells the answer.
type historian struct {
	topic string
	store streams.VersionedRef[text, text]
	out   *streams.Emitter[text, string]
}

func (h *historian) Init(_ streams.TaskContext, out *streams.Emitter[text, string]) error {
	h.out = out
	return nil
}

func (h *historian) Close() error { return nil }

func (h *historian) Process(c streams.TaskContext, r *streams.Record[text, text]) error {
	store := h.store.In(c)
	answer := ""
	found := func(v text, from time.Time, ok bool, err error) error {
		if answer = "none"; ok {
			answer = fmt.Sprintf("%s@%d", *v, from.UnixMilli())
		}
		return err
	}
	var err error
	switch {
	case h.topic == "put":
		until, ok, e := store.Put(r.Key, r.Value, r.Time)
		switch err = e; {
		case !ok:
			answer = "rejected"
		case until.IsZero():
			answer = "latest"
		default:
			answer = fmt.Sprintf("until %d", until.UnixMilli())
		}
	case h.topic == "del":
		if err = found(store.GetAsOf(r.Key, r.Time)); err == nil {
			_, _, err = store.Delete(r.Key, r.Time)
		}
	case r.Value == nil:
		err = found(store.Get(r.Key))
	default:
		at, e := strconv.ParseInt(*r.Value, 10, 64)
		if e != nil {
			return e
		}
		err = found(store.GetAsOf(r.Key, time.UnixMilli(at)))
	}
	h.out.Emit(r.Key, answer)
	return err
}

func init() {
	join := func(left bool, opts ...streams.Opt) func(*streams.App, *scenario) {
		return func(app *streams.App, s *scenario) {
			if s.Params.GraceMs > 0 {
				opts = append(opts, streams.Grace(ms(s.Params.GraceMs)))
			}
			stream, table := app.Stream[text, text]("s"), app.Table[text, text]("t", streams.Versioned(ms(s.Params.HistoryMs)))
			if left {
				stream.LeftJoinTable(table, func(v text, x streams.Maybe[text]) string { return *v + "+" + or(x.V, "~") }, opts...).To("out")
				return
			}
			stream.JoinTable(table, func(v, x text) string { return *v + "+" + *x }, opts...).To("out")
		}
	}
	scenarioApps["st_versioned_as_of"] = join(false)
	scenarioApps["st_versioned_grace"] = join(false)
	scenarioApps["st_versioned_grace_null_key_fails"] = join(true)
	scenarioApps["tt_versioned_left_one_side"] = func(app *streams.App, s *scenario) {
		left(app.Table[text, text]("l", streams.Versioned(ms(s.Params.HistoryMs))), app.Table[text, text]("r")).To("out")
	}
}

func init() {
	joined := func(v, x text) string { return *v + "+" + *x }
	scenarioApps["sg_by_key"] = func(app *streams.App, _ *scenario) {
		app.Stream[text, text]("s").JoinGlobal(app.GlobalTable[text, text]("g"), func(k, _ text) text { return k }, joined).To("out")
	}
	scenarioApps["sg_inner"] = func(app *streams.App, _ *scenario) {
		letter := func(_, v text) text {
			if l := (*v)[:1]; l != "-" {
				return &l
			}
			return nil
		}
		app.Stream[text, text]("s").JoinGlobal(app.GlobalTable[text, text]("g"), letter, joined).To("out")
	}
	scenarioApps["extractor_reads_value"] = func(app *streams.App, _ *scenario) {
		by := func(r *streams.Record[text, *int64], partition time.Time) time.Time {
			if r.Value == nil {
				return partition
			}
			return time.UnixMilli(*r.Value)
		}
		app.Stream[text, *int64]("in", streams.TimestampBy(by)).To("out")
	}
	scenarioApps["count_cached_within_one_step"] = func(app *streams.App, _ *scenario) {
		in(app).FlatMapValues(split).GroupByKey().Count(streams.Cached(1000)).To("out")
	}
}
