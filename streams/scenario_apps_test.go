package streams_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/millrace/millrace/streams"
)

// Values are pointers where a scenario has nulls: nil is null.
type text = *string

func str(s string) text { return &s }

// or is the string, or what stands for null.
func or(s text, null string) string {
	if s == nil {
		return null
	}
	return *s
}

func first(v text) text {
	if v == nil {
		return nil
	}
	return str((*v)[:1])
}

func split(v text) iter.Seq[text] {
	return func(yield func(text) bool) {
		if v == nil {
			return
		}
		for piece := range strings.SplitSeq(*v, ",") {
			if !yield(str(piece)) {
				return
			}
		}
	}
}

func bang(v text) text {
	if v == nil {
		return nil
	}
	return str(*v + "!")
}

// refuse is a function that fails for some values.
func refuse(_ context.Context, r *streams.Record[text, text]) (text, error) {
	if r.Value != nil && strings.HasPrefix(*r.Value, "bad") {
		return nil, fmt.Errorf("refused %s", *r.Value)
	}
	return str(or(r.Value, "null") + "!"), nil
}

func in(app *streams.App) streams.Stream[text, text] { return app.Stream[text, text]("in") }

func (s *scenario) windows() streams.Windows {
	if s.Params.AdvanceMs != 0 && s.Params.AdvanceMs != s.Params.SizeMs {
		return streams.Hopping(ms(s.Params.SizeMs), ms(s.Params.AdvanceMs), streams.Grace(ms(s.Params.GraceMs)))
	}
	return streams.Tumbling(ms(s.Params.SizeMs), streams.Grace(ms(s.Params.GraceMs)))
}

func windowCount(app *streams.App, s *scenario) {
	in(app).GroupByKey().Windowed(s.windows()).Count(streams.As("st")).ToStream().To("out")
}

func windowCountClosed(app *streams.App, s *scenario) {
	in(app).GroupByKey().Windowed(s.windows()).Count(streams.As("st")).OnClose().ToStream().To("out")
}

// concat appends values to a text that starts as given; "del" deletes the row.
func concat(start string) streams.Agg[text, text] {
	return streams.Fold(func() text { return str(start) }, func(a text, v text) text {
		if *v == "del" {
			return nil
		}
		return str(*a + *v)
	})
}

// scenarioApps builds the topology of each scenario that is run.
var scenarioApps = map[string]func(*streams.App, *scenario){
	"aggregate_initializer": func(app *streams.App, _ *scenario) {
		in(app).GroupByKey().TryAggregate(func() string { return "" }, func(_ context.Context, r *streams.Record[text, text], a string) (string, error) {
			return a + *r.Key + *r.Value, nil
		}).To("out")
	},
	"aggregate_null_restarts": func(app *streams.App, _ *scenario) { in(app).GroupByKey().Aggregate(concat(".")).To("out") },
	"aggregate_timestamp_is_max": func(app *streams.App, _ *scenario) {
		in(app).GroupByKey().Count().To("out")
	},
	"children_in_order_attached": func(app *streams.App, _ *scenario) {
		in(app).To("one")
		in(app).MapValues(func(v text) string { return strings.ToUpper(*v) }).To("two")
	},
	"count_skips_null_key_and_null_value": func(app *streams.App, _ *scenario) {
		in(app).GroupByKey().Count(streams.As("st")).To("out")
	},
	"deserialization_continue":     numbers,
	"deserialization_fail_default": numbers,
	"deserialization_continue_stream_time": func(app *streams.App, s *scenario) {
		// The size and the grace of this scenario are outside of its params.
		w := streams.Tumbling(10 * time.Millisecond)
		s.Params.SizeMs = 10
		app.Stream[string, int64]("in").GroupByKey().Windowed(w).Count().ToStream().To("out")
	},
	"filter_keeps_null_values": func(app *streams.App, _ *scenario) {
		in(app).Filter(func(v text) bool { return v == nil || strings.HasPrefix(*v, "y") }).To("out")
	},
	"flat_map_values": func(app *streams.App, _ *scenario) { in(app).FlatMapValues(split).To("out") },
	"group_by_drops_null_keys_on_repartition": func(app *streams.App, _ *scenario) {
		in(app).GroupBy(func(v text) text { return v }).Count().To("out")
	},
	"map_changes_key_and_value": func(app *streams.App, _ *scenario) {
		in(app).Map(func(k, v text) (text, text) { return first(v), str(or(k, "null") + "/" + or(v, "null")) }).To("out")
	},
	"map_values_keeps_timestamp_and_key":       func(app *streams.App, _ *scenario) { in(app).MapValues(bang).To("out") },
	"on_close_default_retention_jump_boundary": windowCountClosed,
	"on_close_default_retention_loses_on_jump": windowCountClosed,
	"on_close_many_windows_at_once":            windowCountClosed,
	"on_close_then_stream_continues": func(app *streams.App, s *scenario) {
		in(app).GroupByKey().Windowed(s.windows()).Count().OnClose().ToStream().
			Rekey(func(_ streams.Window, k text) text { return k }).GroupByKey().Count().To("out")
	},
	"on_close_timestamp": func(app *streams.App, s *scenario) {
		in(app).GroupByKey().Windowed(s.windows()).Aggregate(concat("")).OnClose().ToStream().To("out")
	},
	"processing_continue":    func(app *streams.App, _ *scenario) { in(app).TryMapValues(refuse).To("out") },
	"processing_dead_letter": func(app *streams.App, _ *scenario) { in(app).TryMapValues(refuse).To("out") },
	"processing_continue_flat_map_midway": func(app *streams.App, _ *scenario) {
		in(app).FlatMapValues(split).TryMapValues(refuse).To("out")
	},
	"processing_continue_two_branches": func(app *streams.App, _ *scenario) {
		in(app).To("one")
		in(app).TryMapValues(refuse).To("two")
		in(app).To("three")
	},
	"repartition_drops_null_keys": func(app *streams.App, _ *scenario) { in(app).Repartition().To("out") },
	"select_key":                  func(app *streams.App, _ *scenario) { in(app).SelectKey(first).To("out") },
	"st_inner":                    join,
	"st_inner_null_records":       join,
	"st_table_from_count": func(app *streams.App, _ *scenario) {
		s := app.Stream[string, string]("s")
		counts := s.GroupByKey().Count()
		s.JoinTable(counts, func(v string, n int64) string { return fmt.Sprintf("%s+%d", v, n) }).To("out")
	},
	"table_source_to_stream": func(app *streams.App, _ *scenario) {
		app.Table[string, text]("in", streams.As("t")).ToStream().To("out")
	},
	"tumbling_aggregate_null_result": func(app *streams.App, s *scenario) {
		in(app).GroupByKey().Windowed(s.windows()).Aggregate(concat(".")).ToStream().To("out")
	},
	"tumbling_count_boundaries":                     windowCount,
	"tumbling_grace_end":                            windowCount,
	"tumbling_null_records_and_stream_time":         windowCount,
	"tumbling_stream_time_is_per_partition_not_key": windowCount,
}

func numbers(app *streams.App, _ *scenario) { app.Stream[string, int64]("in").To("out") }

func join(app *streams.App, _ *scenario) {
	app.Stream[text, text]("s").JoinTable(app.Table[text, text]("t"), func(v, row text) string { return *v + "+" + *row }).To("out")
}
