package streams_test

import (
	"github.com/millrace/millrace/streams"
)

func init() {
	for name, build := range map[string]func(*streams.App, *scenario){
		"hopping_count": windowCount,
		"hopping_grace": windowCount,
		"hopping_reduce_max": func(app *streams.App, s *scenario) {
			in(app).GroupByKey().Windowed(s.windows()).Reduce(larger, streams.As("st")).ToStream().To("out")
		},
		"on_close_hopping": func(app *streams.App, s *scenario) {
			in(app).GroupByKey().Windowed(s.windows()).Reduce(join2).OnClose().ToStream().To("out")
		},
		"session_gap_boundary":   sessionCount,
		"session_grace_boundary": sessionCount,
		"session_late":           sessionCount,
		"session_null_records":   sessionCount,
		"session_update_inside":  sessionCount,
		"session_merge_two": func(app *streams.App, s *scenario) {
			s.sessions(app).Reduce(join2).ToStream().To("out")
		},
		"session_aggregate_merger": func(app *streams.App, s *scenario) {
			agg := streams.MergeFold(func() string { return "" }, func(a string, v text) string { return a + *v },
				func(a, b string) string { return "(" + a + "|" + b + ")" })
			s.sessions(app).Aggregate(agg).ToStream().To("out")
		},
		"session_null_aggregate": func(app *streams.App, s *scenario) {
			start := concat(".")
			s.sessions(app).Aggregate(streams.MergeFold(start.Init, start.Add, joinTexts)).ToStream().To("out")
		},
		"on_close_session": func(app *streams.App, s *scenario) {
			s.sessions(app).Count().OnClose().ToStream().To("out")
		},
		"on_close_session_grace_merge": func(app *streams.App, s *scenario) {
			s.sessions(app).Reduce(join2).OnClose().ToStream().To("out")
		},
		"cogroup_hopping":  cogroupWindowed,
		"cogroup_tumbling": cogroupWindowed,
		"cogroup_session": func(app *streams.App, s *scenario) {
			cogrouped(app, byKey).Sessions(ms(s.Params.GapMs), streams.Grace(ms(s.Params.GraceMs))).
				Aggregate(func() text { return str("") }, joinTexts).ToStream().To("out")
		},
		"sliding_boundary": func(app *streams.App, s *scenario) {
			s.sliding(app).Reduce(join2).ToStream().To("out")
		},
		"sliding_in_order":       slidingCount,
		"sliding_late_grace":     slidingCount,
		"sliding_null_records":   slidingCount,
		"sliding_same_timestamp": slidingCount,
		// Suppressing until a window closes is what OnClose does.
		"suppress_window_closes": windowCountClosed,
		"suppress_session_closes": func(app *streams.App, s *scenario) {
			s.sessions(app).Count().SuppressUntilClose().ToStream().To("out")
		},
		"suppress_full_buffer_shuts_down": func(app *streams.App, s *scenario) {
			in(app).GroupByKey().Windowed(s.windows()).Count().
				SuppressUntilClose(streams.MaxRecords(s.Params.MaxRecords), streams.FailWhenFull()).ToStream().To("out")
		},
		"suppress_max_records_one": func(app *streams.App, s *scenario) {
			app.Table[text, text]("in").Suppress(ms(s.Params.WaitMs), streams.MaxRecords(s.Params.MaxRecords)).To("out")
		},
		"suppress_time_limit":             suppressedCount,
		"suppress_time_limit_max_records": suppressedCount,
		"suppress_window_closes_grace":    windowCountClosed,
	} {
		scenarioApps[name] = build
	}
}

func (s *scenario) sessions(app *streams.App) streams.SGrouped[text, text] {
	return in(app).GroupByKey().Sessions(ms(s.Params.GapMs), streams.Grace(ms(s.Params.GraceMs)))
}

func sessionCount(app *streams.App, s *scenario) { s.sessions(app).Count().ToStream().To("out") }

func larger(a, b text) text {
	if *b > *a {
		return b
	}
	return a
}

// joinTexts concatenates what is not null.
func joinTexts(a, b text) text { return str(or(a, "") + or(b, "")) }

func (s *scenario) sliding(app *streams.App) streams.WGrouped[text, text] {
	return in(app).GroupByKey().Windowed(streams.Sliding(ms(s.Params.TimeDifferenceMs), streams.Grace(ms(s.Params.GraceMs))))
}

func slidingCount(app *streams.App, s *scenario) { s.sliding(app).Count().ToStream().To("out") }

func cogroupWindowed(app *streams.App, s *scenario) {
	cogrouped(app, byKey).Windowed(s.windows()).Aggregate(func() text { return str("") }).ToStream().To("out")
}

func byKey(s streams.Stream[text, text]) streams.Grouped[text, text] { return s.GroupByKey() }

func suppressedCount(app *streams.App, s *scenario) {
	in(app).GroupByKey().Count().Suppress(ms(s.Params.WaitMs), streams.MaxRecords(s.Params.MaxRecords)).To("out")
}
