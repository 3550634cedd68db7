package streams_test

import (
	"strings"

	"github.com/millrace/millrace/streams"
)

func init() {
	for _, name := range []string{"fk_inner", "fk_inner_change", "fk_inner_left_deleted", "fk_inner_null_fk", "fk_inner_right_deleted", "fk_inner_timestamps"} {
		scenarioApps[name] = func(app *streams.App, _ *scenario) {
			app.Table[text, text]("l").JoinFK(app.Table[text, text]("r"), func(_, v text) text { return foreign(v) },
				func(l, r text) string { return *l + "+" + *r }).To("out")
		}
	}
	for _, name := range []string{"fk_left", "fk_left_change", "fk_left_null_fk"} {
		scenarioApps[name] = func(app *streams.App, _ *scenario) {
			fk := func(_, v text) streams.Maybe[text] {
				k := foreign(v)
				return streams.Maybe[text]{V: k, OK: k != nil}
			}
			app.Table[text, text]("l").LeftJoinFK(app.Table[text, text]("r"), fk,
				func(l text, r streams.Maybe[text]) string { return *l + "+" + or(r.V, "~") }).To("out")
		}
	}
}

// foreign is what stands before the slash, null for "-".
func foreign(v text) text {
	if k, _, _ := strings.Cut(*v, "/"); k != "-" {
		return str(k)
	}
	return nil
}
