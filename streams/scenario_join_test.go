package streams_test

import (
	"github.com/millrace/millrace/streams"
)

func init() {
	for _, name := range []string{"ss_inner_interleaved_keys", "ss_inner_late_beyond_grace", "ss_inner_null_records", "ss_inner_only_after",
		"ss_inner_store_retention_boundary", "ss_inner_symmetric_boundary"} {
		scenarioApps[name] = func(app *streams.App, s *scenario) {
			innerStreams(app.Stream[text, text]("l"), app.Stream[text, text]("r"), s).To("out")
		}
	}
	for _, name := range []string{"ss_self_join", "ss_self_join_asymmetric"} {
		scenarioApps[name] = func(app *streams.App, s *scenario) { innerStreams(in(app), in(app), s).To("out") }
	}
	scenarioApps["ss_inner_after_rekey"] = func(app *streams.App, s *scenario) {
		innerStreams(app.Stream[text, text]("l").SelectKey(group), app.Stream[text, text]("r"), s).To("out")
	}
	for _, name := range []string{"ss_left_late_record", "ss_left_null_key", "ss_left_out_of_order_spurious", "ss_left_several_keys_order",
		"ss_left_unmatched_after_close"} {
		scenarioApps[name] = func(app *streams.App, s *scenario) {
			app.Stream[text, text]("l").LeftJoin(app.Stream[text, text]("r"), func(l text, r streams.Maybe[text]) string {
				return *l + "+" + or(r.V, "~")
			}, s.reach()).To("out")
		}
	}
	for _, name := range []string{"ss_outer_asymmetric", "ss_outer_asymmetric_right_arrivals", "ss_outer_both_sides", "ss_outer_duplicates",
		"ss_outer_null_records"} {
		scenarioApps[name] = func(app *streams.App, s *scenario) {
			app.Stream[text, text]("l").OuterJoin(app.Stream[text, text]("r"), func(l, r streams.Maybe[text]) string {
				return or(l.V, "~") + "+" + or(r.V, "~")
			}, s.reach()).To("out")
		}
	}
}

func (s *scenario) reach() streams.JoinWindow {
	return streams.Around(ms(s.Params.BeforeMs), ms(s.Params.AfterMs), streams.Grace(ms(s.Params.GraceMs)))
}

func innerStreams(l, r streams.Stream[text, text], s *scenario) streams.Stream[text, string] {
	return l.Join(r, func(l, r text) string { return *l + "+" + *r }, s.reach())
}
