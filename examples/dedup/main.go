// Command dedup lets each order through once, though the shop sends some twice.
package main

import (
	"context"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

type order struct {
	ID   string
	Item string
}

// job remembers the ids of the last hour. Orders have their customer as the key, so
// that copies come to the same task, which has the id in its part of the store. The store is part of the transaction: an
// id is seen if and only if its order went out.
func job(prefix string) *streams.App {
	app := streams.New(prefix + "dedup")
	seen := app.Store[string, time.Time]("seen", streams.Retention(time.Hour))
	first := func(ctx context.Context, r *streams.Record[string, order]) (bool, error) {
		ids := seen.In(ctx)
		if _, again, err := ids.Get(r.Value.ID); again || err != nil {
			return false, err
		}
		return true, ids.Put(r.Value.ID, r.Time)
	}
	app.Stream[string, order](prefix+"orders").
		TryFilter(first, streams.Use(seen), streams.As("first")).
		To(prefix + "unique")
	return app
}

func main() { play().Main() }

func play() stage.Play {
	send := func(minute int, user string, o order) stage.Record[string, order] {
		noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		return stage.Record[string, order]{At: noon.Add(time.Duration(minute) * time.Minute), Key: user, Value: o}
	}
	return stage.Play{
		Name: "dedup", About: "Drops orders whose id was seen within the hour.", Job: job,
		In: []stage.Input{stage.In("orders",
			send(0, "ann", order{"o1", "tea"}), send(1, "ann", order{"o1", "tea"}), send(2, "bob", order{"o2", "cup"}),
			send(3, "ann", order{"o3", "tea"}), send(59, "bob", order{"o2", "cup"}),
			send(180, "ann", order{"o1", "pot"}), // hours later ids are used again
		)},
		Out: []stage.Output{stage.Out("unique", 4, func(r streams.Record[string, order]) string {
			return r.Time.Format("15:04 ") + r.Key + " " + r.Value.ID + " " + r.Value.Item
		})},
	}
}
