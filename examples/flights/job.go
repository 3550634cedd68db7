package main

import (
	"time"

	"github.com/millrace/millrace/streams"
)

// The topics of the demo. Each run with --brokers gets its own set, so that runs do not meet.
type topics struct{ flights, airports, results string }

func topicsOf(prefix string) topics {
	return topics{flights: prefix + "flights", airports: prefix + "airports", results: prefix + "state-days"}
}

// leg is a flight with the state that it left from.
type leg struct {
	State string
	Delay int64
}

// row is a result as it goes to SQLite, named by its key "TX 2001-01-31".
type row struct {
	State   string  `json:"state"`
	Day     string  `json:"day"`
	Flights int64   `json:"flights"`
	Minutes int64   `json:"minutes"`
	Average float64 `json:"average"`
}

// quarter is the grace of the windows: the span of the data. Partitions advance independently, and after a kill one may
// have to catch up from the first of January while another is in March; nothing of that is late.
const quarter = 100 * 24 * time.Hour

// job is the whole job: join by origin, group by state, count and add up in windows of one day.
func job(id string, t topics) *streams.App {
	app := streams.New(id)
	airports := app.Table[string, Airport](t.airports)
	app.Stream[string, Flight](t.flights).
		JoinTable(airports, func(f Flight, a Airport) leg { return leg{State: a.State, Delay: f.Delay} }).
		GroupBy(func(l leg) string { return l.State }, streams.As("by-state")).
		Windowed(streams.Tumbling(24*time.Hour, streams.Grace(quarter))).
		Aggregate(streams.Fold(func() Delays { return Delays{} }, addLeg), streams.As("state-days")).
		Map(resultRow).
		To(t.results)
	return app
}

func addLeg(d Delays, l leg) Delays {
	return Delays{Flights: d.Flights + 1, Minutes: d.Minutes + l.Delay}
}

func resultRow(w streams.Window, state string, d Delays) (string, row) {
	day := w.Start.Format(time.DateOnly)
	return state + " " + day, row{State: state, Day: day, Flights: d.Flights, Minutes: d.Minutes, Average: average(d)}
}

func average(d Delays) float64 { return float64(d.Minutes) / float64(d.Flights) }
