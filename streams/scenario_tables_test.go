package streams_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/streams"
)

func init() {
	for name, build := range map[string]func(*streams.App, *scenario){
		"merge_then_count": func(app *streams.App, _ *scenario) {
			app.Stream[text, text]("l").Merge(app.Stream[text, text]("r")).GroupByKey().Count().To("out")
		},
		"split_first_match_and_default": func(app *streams.App, _ *scenario) {
			below := func(s string) func(text) bool { return func(v text) bool { return v != nil && *v < s } }
			ways := in(app).Split(streams.When(below("c")), streams.When(below("m")))
			ways[0].To("lo")
			ways[1].To("mid")
			ways[2].To("rest")
		},
		"st_left_null_records": leftJoin(func(s streams.Stream[text, text]) streams.Stream[text, text] { return s }),
		"st_left_rekeyed": leftJoin(func(s streams.Stream[text, text]) streams.Stream[text, text] {
			return s.SelectKey(group)
		}),
		"reduce_concat":               func(app *streams.App, _ *scenario) { in(app).GroupByKey().Reduce(join2, streams.As("st")).To("out") },
		"reduce_returns_null_deletes": func(app *streams.App, _ *scenario) { in(app).GroupByKey().Reduce(join2, streams.As("st")).To("out") },
		"tumbling_reduce_null_value": func(app *streams.App, s *scenario) {
			in(app).GroupByKey().Windowed(s.windows()).Reduce(func(a, b text) text { return str(or(a, "~") + "/" + or(b, "~")) }).ToStream().To("out")
		},
		"to_table_after_select_key": func(app *streams.App, _ *scenario) {
			in(app).TrySelectKey(func(_ context.Context, r *streams.Record[text, text]) (text, error) {
				if r.Value == nil {
					return r.Key, nil
				}
				return first(r.Value), nil
			}).ToTable(streams.As("t")).To("out")
		},
		"table_filter_after_count_above_one": func(app *streams.App, _ *scenario) {
			in(app).GroupByKey().Count().Filter(func(n int64) bool { return n > 1 }).To("out")
		},
		"table_filter_after_count_even": func(app *streams.App, _ *scenario) {
			in(app).GroupByKey().Count().Filter(func(n int64) bool { return n%2 == 0 }).To("out")
		},
		"table_filter_not": func(app *streams.App, _ *scenario) {
			table(app).Filter(func(v text) bool { return !strings.HasPrefix(*v, "y") }).To("out")
		},
		"table_filter_not_materialized": func(app *streams.App, _ *scenario) {
			table(app).Filter(func(v text) bool { return strings.HasPrefix(*v, "y") }).To("out")
		},
		"tumbling_then_table_filter": func(app *streams.App, s *scenario) {
			in(app).GroupByKey().Windowed(s.windows()).Count().Filter(func(n int64) bool { return n > 1 }).ToStream().To("out")
		},
		"table_map_values": func(app *streams.App, _ *scenario) { table(app).MapValues(bang).To("out") },
		"table_map_values_then_filter": func(app *streams.App, _ *scenario) {
			table(app).MapValues(first).Filter(func(v text) bool { return *v != "n" }).To("out")
		},
		"table_map_values_twice": func(app *streams.App, _ *scenario) {
			table(app).MapValues(func(v text) int { return len(*v) }).
				TryMapValues(func(_ context.Context, r *streams.Record[text, int]) (text, error) {
					return str(fmt.Sprintf("%s%d", *r.Key, 2*r.Value)), nil
				}).ToStream().ToTable(streams.As("m")).To("out")
		},
		"table_group_by_moves_key":  tableCount,
		"table_group_by_same_group": tableCount,
		"table_group_by_out_of_order": func(app *streams.App, _ *scenario) {
			app.Table[string, int64]("in").GroupBy(func(k string, v int64) (string, int64) { return k[:1], v }).
				Aggregate(streams.Total(func(v int64) int64 { return v })).To("out")
		},
		"table_group_by_aggregate_trace": func(app *streams.App, _ *scenario) {
			table(app).GroupBy(func(_, v text) (text, text) {
				if *first(v) == "n" {
					return nil, v
				}
				return first(v), v
			}).Aggregate(streams.Balance(func() string { return "" },
				func(a string, v text) string { return a + "+" + *v }, func(a string, v text) string { return a + "-" + *v })).To("out")
		},
		"tt_inner": tables(inner),
		"tt_inner_joiner_null": tables(func(l, r streams.Table[text, text]) streams.Table[text, text] {
			return inner(l, r).ToStream().ToTable(streams.As("j"))
		}),
		"tt_inner_tombstones":   tables(inner),
		"tt_left":               tables(left),
		"tt_outer":              tables(outer),
		"tt_outer_out_of_order": tables(outer),
		"tt_self_join": func(app *streams.App, _ *scenario) {
			inner(table(app), table(app)).To("out")
		},
		"cogroup_two":          cogroup(byKey),
		"cogroup_null_records": cogroup(byKey),
		"cogroup_rekeyed":      cogroup(func(s streams.Stream[text, text]) streams.Grouped[text, text] { return s.GroupBy(first) }),
		"dynamic_topic":        func(app *streams.App, _ *scenario) { in(app).Route(func(k, _ text) string { return *k }) },
	} {
		scenarioApps[name] = build
	}
}

func cogroup(group func(streams.Stream[text, text]) streams.Grouped[text, text]) func(*streams.App, *scenario) {
	return func(app *streams.App, _ *scenario) {
		cogrouped(app, group).Aggregate(func() text { return str("") }).To("out")
	}
}

func cogrouped(app *streams.App, group func(streams.Stream[text, text]) streams.Grouped[text, text]) streams.Cogrouped[text, text] {
	add := func(side string) func(a, v text) text {
		return func(a, v text) text {
			if *v == "del" {
				return nil
			}
			return str(*a + side + *v)
		}
	}
	return group(app.Stream[text, text]("l")).Cogroup(add("l")).With(app.Stream[text, text]("r").GroupByKey(), add("r"))
}

func tables(join func(l, r streams.Table[text, text]) streams.Table[text, text]) func(*streams.App, *scenario) {
	return func(app *streams.App, _ *scenario) {
		join(app.Table[text, text]("l"), app.Table[text, text]("r")).To("out")
	}
}

// The joiners: left, +, right, with ~ for a missing side; null for "n".
func inner(l, r streams.Table[text, text]) streams.Table[text, text] {
	return l.Join(r, func(l, r text) text {
		if *l == "n" {
			return nil
		}
		return str(*l + "+" + *r)
	})
}

func left(l, r streams.Table[text, text]) streams.Table[text, text] {
	return l.LeftJoin(r, func(l text, r streams.Maybe[text]) text { return str(*l + "+" + or(r.V, "~")) })
}

func outer(l, r streams.Table[text, text]) streams.Table[text, text] {
	return l.OuterJoin(r, func(l, r streams.Maybe[text]) text { return str(or(l.V, "~") + "+" + or(r.V, "~")) })
}

func table(app *streams.App) streams.Table[text, text] { return app.Table[text, text]("in") }

func tableCount(app *streams.App, _ *scenario) {
	table(app).GroupBy(func(k, v text) (text, text) { return v, k }).Count().To("out")
}

// join2 is the reducer old + new that deletes at "del".
func join2(a, b text) text {
	if *b == "del" {
		return nil
	}
	return str(*a + *b)
}

// group is the first letter, none for "-".
func group(v text) text {
	if *v == "-" {
		return nil
	}
	return first(v)
}

func leftJoin(key func(streams.Stream[text, text]) streams.Stream[text, text]) func(*streams.App, *scenario) {
	return func(app *streams.App, _ *scenario) {
		key(app.Stream[text, text]("s")).LeftJoinTable(app.Table[text, text]("t"), func(v text, row streams.Maybe[text]) string {
			if !row.OK {
				return *v + "+~"
			}
			return *v + "+" + *row.V
		}).To("out")
	}
}

// tidy are scenarios where Kafka Streams sends deletions of rows that are not
// there: behind a table that it does not store, where it does not know the row
// before, or because it takes the initial value of an aggregation for a row. Our
// tables know their rows, so these deletions do not come; everything else does.
var tidy = map[string]bool{"table_filter_not_materialized": true, "table_filter_after_count_even": true}

// withoutIdleDeletions leaves out the deletions of rows that are not there.
func withoutIdleDeletions(in []expected) (out []expected) {
	there := map[string]bool{}
	for _, e := range in {
		if e.Value == nil && !there[*e.Key] {
			continue
		}
		there[*e.Key] = e.Value != nil
		out = append(out, e)
	}
	return out
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
