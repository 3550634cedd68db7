// Command erasure forgets a customer on request, as the GDPR demands: in the job's
// state, in what it has sent, and in the topic that it reads from.
package main

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

type customer struct{ Name, Street string }

type order struct{ Cents int }

// profile is what is derived from orders. It is a pointer, so that it can be nil:
// null deletes.
type profile struct {
	Orders int
	Cents  int
}

// job adds up the orders of each customer. A request deletes the row: that is a
// tombstone in the store's changelog and one in the output, and a third goes to the
// topic of customers. Compaction then removes what lies before them. The orders
// themselves are in a topic that keeps records for a limited time.
func job(prefix string) *streams.App {
	app := streams.New(prefix + "erasure")
	orders := app.Stream[string, order](prefix + "orders")      // by customer
	requests := app.Stream[string, string](prefix + "erasures") // by customer
	orders.GroupByKey().Cogroup(func(p *profile, o order) *profile {
		return &profile{p.Orders + 1, p.Cents + o.Cents}
	}).
		With(requests.GroupByKey(), func(*profile, string) *profile { return nil }).
		Aggregate(func() *profile { return &profile{} }, streams.As("profiles")).
		To(prefix + "profiles")
	requests.MapValues(func(string) *customer { return nil }).To(prefix + "customers")
	return app
}

func main() { play().Main() }

func play() stage.Play {
	at := func(minute int) time.Time { return time.Date(2026, 6, 1, 12, minute, 0, 0, time.UTC) }
	return stage.Play{
		Name: "erasure", About: "Forgets a customer on request: tombstones in the state, the output and the input.", Job: job,
		In: []stage.Input{
			stage.In("customers",
				stage.Record[string, *customer]{At: at(0), Key: "c1", Value: &customer{"Ann", "Mill Lane 1"}},
				stage.Record[string, *customer]{At: at(0), Key: "c2", Value: &customer{"Bob", "Race Road 2"}},
			),
			stage.In("orders",
				stage.Record[string, order]{At: at(1), Key: "c1", Value: order{950}},
				stage.Record[string, order]{At: at(2), Key: "c2", Value: order{700}},
				stage.Record[string, order]{At: at(3), Key: "c1", Value: order{50}},
				stage.Record[string, order]{At: at(9), Key: "c1", Value: order{1}}, // who comes back begins anew
			),
			stage.In("erasures", stage.Record[string, string]{At: at(5), Key: "c1", Value: "ticket 4711"}),
		},
		Out: []stage.Output{
			stage.Out("customers", 3, func(r streams.Record[string, *customer]) string {
				if r.Value == nil {
					return r.Key + " erased"
				}
				return fmt.Sprint(r.Key, " ", *r.Value)
			}),
			stage.Out("profiles", 5, func(r streams.Record[string, *profile]) string {
				if r.Value == nil {
					return r.Key + " erased"
				}
				return fmt.Sprintf("%s %d orders, %d cents", r.Key, r.Value.Orders, r.Value.Cents)
			}),
		},
	}
}
