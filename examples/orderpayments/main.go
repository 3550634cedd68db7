// Command orderpayments finds out which orders were paid within five minutes, and
// which were not.
package main

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

type order struct {
	User  string
	Cents int
}

type payment struct{ Cents int }

// job joins orders with payments of the same key that come up to five minutes
// after them. An order that meets none goes out alone, once no payment can come any
// more; with Strict never before that, and never besides a match.
func job(prefix string) *streams.App {
	app := streams.New(prefix + "orderpayments")
	orders := app.Stream[string, order](prefix + "orders")
	payments := app.Stream[string, payment](prefix + "payments")
	orders.LeftJoin(payments, state,
		streams.After(5*time.Minute, streams.Grace(time.Minute), streams.Strict()), streams.As("paid")).
		To(prefix + "states")
	return app
}

func state(o order, p streams.Maybe[payment]) string {
	switch {
	case !p.OK:
		return o.User + " has not paid"
	case p.V.Cents < o.Cents:
		return fmt.Sprintf("%s owes %d cents", o.User, o.Cents-p.V.Cents)
	}
	return o.User + " has paid"
}

func main() { play().Main() }

func play() stage.Play {
	at := func(minute int) time.Time { return time.Date(2026, 6, 1, 12, minute, 0, 0, time.UTC) }
	return stage.Play{
		Name: "orderpayments", About: "Joins orders with payments; orders that nobody pays are results too.", Job: job,
		In: []stage.Input{
			stage.In("orders",
				stage.Record[string, order]{At: at(0), Key: "o1", Value: order{"ann", 950}},
				stage.Record[string, order]{At: at(1), Key: "o2", Value: order{"bob", 700}},
				stage.Record[string, order]{At: at(2), Key: "o3", Value: order{"cem", 120}},
				stage.Record[string, order]{At: at(3), Key: "o4", Value: order{"dan", 500}},
				stage.Record[string, order]{At: at(59), Key: "o5", Value: order{"eve", 1}}, // time goes on
			),
			stage.In("payments",
				stage.Record[string, payment]{At: at(2), Key: "o1", Value: payment{950}},
				stage.Record[string, payment]{At: at(4), Key: "o4", Value: payment{450}},
				stage.Record[string, payment]{At: at(10), Key: "o3", Value: payment{120}}, // too late
			),
		},
		Out: []stage.Output{stage.Out("states", 4, func(r streams.Record[string, string]) string {
			return r.Key + " " + r.Value
		})},
	}
}
