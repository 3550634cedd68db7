// Command enrichment gives each order the title and price of the item that it
// names: a join of two tables by a foreign key.
package main

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

type order struct {
	Item  string // key of an item
	Count int
}

type item struct {
	Title string
	Cents int
}

// job keeps both tables. The order's key stays the key of the result; a changed
// order gives a new line, and a changed item a new line for each order of it.
func job(prefix string) *streams.App {
	app := streams.New(prefix + "enrichment")
	items := app.Table[string, item](prefix + "items")
	app.Table[string, order](prefix+"orders").
		JoinFK(items,
			func(_ string, o order) string { return o.Item },
			func(o order, i item) string {
				return fmt.Sprintf("%d × %s: %d cents", o.Count, i.Title, o.Count*i.Cents)
			},
			streams.As("line")).
		To(prefix + "lines")
	return app
}

func main() { play().Main() }

func play() stage.Play {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	return stage.Play{
		Name: "enrichment", About: "Joins orders with items by the item's key inside of the order.", Job: job,
		In: []stage.Input{
			stage.In("items",
				stage.Record[string, item]{At: at, Key: "i7", Value: item{"tea", 450}},
				stage.Record[string, item]{At: at, Key: "i8", Value: item{"cup", 990}},
			),
			stage.In("orders",
				stage.Record[string, order]{At: at, Key: "o1", Value: order{"i7", 2}},
				stage.Record[string, order]{At: at, Key: "o2", Value: order{"i8", 1}},
				stage.Record[string, order]{At: at, Key: "o3", Value: order{"i7", 1}},
				stage.Record[string, order]{At: at, Key: "o4", Value: order{"i9", 1}}, // no such item: no line
			),
		},
		Out: []stage.Output{stage.Out("lines", 3, func(r streams.Record[string, string]) string {
			return r.Key + " " + r.Value
		})},
	}
}
