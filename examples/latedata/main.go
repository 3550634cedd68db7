// Command latedata measures by the minute, and loses nothing: readings that come too
// late and readings that nobody can read go to topics of their own.
package main

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

type reading struct {
	Celsius float64 `json:"celsius"`
}

// job reads by sensor and sends the highest reading of each sensor and minute when the minute is over
// and ten seconds of grace have passed. All three outputs are in one transaction.
func job(prefix string) *streams.App {
	app := streams.New(prefix+"latedata", streams.OnError(streams.Always(streams.DeadLetter(prefix+"unreadable"))))
	app.Stream[string, reading](prefix+"readings").
		GroupByKey().
		Windowed(streams.Tumbling(time.Minute, streams.Grace(10*time.Second))).
		Reduce(func(a, b reading) reading { return reading{max(a.Celsius, b.Celsius)} },
			streams.As("highest"), streams.LateTo(prefix+"late")).
		OnClose().
		Map(func(w streams.Window, sensor string, r reading) (string, string) {
			return sensor, fmt.Sprintf("%s at most %.1f °C", w.Start.Format("15:04"), r.Celsius)
		}).
		To(prefix + "minutes")
	return app
}

func main() { play().Main() }

func play() stage.Play {
	send := func(second int, json string) stage.Record[string, string] {
		noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		return stage.Record[string, string]{At: noon.Add(time.Duration(second) * time.Second), Key: "roof", Value: json}
	}
	return stage.Play{
		Name: "latedata", About: "Windows with grace; late and unreadable records go to topics of their own.", Job: job,
		In: []stage.Input{stage.In("readings",
			send(5, `{"celsius": 20.5}`), send(65, `{"celsius": 23}`),
			send(50, `{"celsius": 21.5}`),                            // out of order, within the grace
			send(66, `{"celsius": "warm"}`),                          // unreadable
			send(71, `{"celsius": 24}`), send(59, `{"celsius": 30}`), // the grace is over: late
			send(200, `{"celsius": 19}`), // time goes on
		)},
		Out: []stage.Output{
			stage.Out("minutes", 2, func(r streams.Record[string, string]) string { return r.Key + " " + r.Value }),
			stage.Out("late", 1, func(r streams.Record[string, string]) string {
				return fmt.Sprintf("%s %s, offset %s of %s", r.Time.Format("15:04:05"), r.Value,
					r.Headers.Get("__streams.late.offset"), r.Headers.Get("__streams.late.topic"))
			}),
			stage.Out("unreadable", 1, func(r streams.Record[string, string]) string {
				return fmt.Sprintf("%s, offset %s: phase %s", r.Value,
					r.Headers.Get("__streams.errors.offset"), r.Headers.Get("__streams.errors.phase"))
			}),
		},
	}
}
