// Command clicksessions turns clicks into visits: the clicks of one user with no
// pause of half an hour between them.
package main

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

// visit is what is known of a session.
type visit struct {
	Clicks int
	Bought bool
}

func addClick(v visit, page string) visit {
	return visit{Clicks: v.Clicks + 1, Bought: v.Bought || page == "/paid"}
}

// merge joins two visits when a late click closes the gap between them.
func merge(a, b visit) visit {
	return visit{Clicks: a.Clicks + b.Clicks, Bought: a.Bought || b.Bought}
}

// job reads pages by user, and sends one result for each visit, when no click can belong to it any more.
func job(prefix string) *streams.App {
	app := streams.New(prefix + "clicksessions")
	app.Stream[string, string](prefix+"clicks").
		GroupByKey().
		Sessions(30*time.Minute, streams.Grace(5*time.Minute)).
		Aggregate(streams.MergeFold(func() visit { return visit{} }, addClick, merge), streams.As("visits")).
		OnClose().
		Map(func(w streams.Window, user string, v visit) (string, string) {
			return user, fmt.Sprintf("%s for %v: %d clicks, bought: %v",
				w.Start.Format("15:04"), w.End.Sub(w.Start).Round(time.Minute), v.Clicks, v.Bought)
		}).
		To(prefix + "sessions")
	return app
}

func main() { play().Main() }

func play() stage.Play {
	click := func(minute int, user, page string) stage.Record[string, string] {
		noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		return stage.Record[string, string]{At: noon.Add(time.Duration(minute) * time.Minute), Key: user, Value: page}
	}
	return stage.Play{
		Name: "clicksessions", About: "Turns clicks into visits with a gap of 30 minutes; each visit is reported once, when it is over.", Job: job,
		In: []stage.Input{stage.In("clicks",
			click(0, "ann", "/"), click(1, "bob", "/"), click(10, "ann", "/tea"),
			click(45, "ann", "/cart"), // 35 minutes later: another visit …
			click(44, "ann", "/tea"),
			click(25, "ann", "/cup"), // … until this click, which was under way for long, closes the gap
			click(50, "ann", "/paid"),
			click(180, "eve", "/"), // time goes on, which ends the visits before
		)},
		Out: []stage.Output{stage.Out("sessions", 2, func(r streams.Record[string, string]) string {
			return r.Key + " " + r.Value
		})},
	}
}
