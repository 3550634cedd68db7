// Command fraud raises an alert when a tiny payment, which tries whether a stolen
// card works, is followed by a large one of the same card within a minute.
package main

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

// rule is the processor of one task. What it knows of a card is in a store, and a
// timer by stream time deletes it, so that the store does not grow for ever. Both
// are part of the transaction: a crash forgets nothing and counts nothing twice.
// A timer comes after the record that makes it due, so the minute is checked where
// it matters.
type rule struct {
	tried  streams.KVRef[string, int64] // cents of the tiny payment, by card
	forget streams.TimersRef[string]
	out    *streams.Emitter[string, string]
}

// Init implements streams.Processor.
func (r *rule) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	r.out = out
	out.OnTimer(r.forget, func(c streams.TaskContext, card string, _ time.Time) error {
		return r.tried.In(c).Delete(card)
	})
	return nil
}

// Process implements streams.Processor.
func (r *rule) Process(c streams.TaskContext, p *streams.Record[string, int64]) error {
	tried, forget := r.tried.In(c), r.forget.In(c)
	tiny, at, seen, err := tried.GetWithTime(p.Key)
	switch {
	case err != nil:
		return err
	case p.Value < 100:
		if err := tried.Put(p.Key, p.Value); err != nil {
			return err
		}
		return forget.Set(p.Key, p.Time.Add(time.Minute))
	case seen && p.Value > 50_000 && p.Time.Before(at.Add(time.Minute)):
		r.out.Emit(p.Key, fmt.Sprintf("%d cents after %d", p.Value, tiny))
	}
	return nil
}

// Close implements streams.Processor.
func (r *rule) Close() error { return nil }

// job reads payments in cents, by card.
func job(prefix string) *streams.App {
	app := streams.New(prefix + "fraud")
	tried := app.Store[string, int64]("tried")
	forget := app.Timers[string]("forget", streams.StreamTime)
	app.Stream[string, int64](prefix+"payments").
		Process(func() streams.Processor[string, int64, string, string] { return &rule{tried: tried, forget: forget} },
			streams.Use(tried, forget), streams.As("rule")).
		To(prefix + "alerts")
	return app
}

func main() { play().Main() }

func play() stage.Play {
	pay := func(second int, card string, cents int64) stage.Record[string, int64] {
		noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		return stage.Record[string, int64]{At: noon.Add(time.Duration(second) * time.Second), Key: card, Value: cents}
	}
	return stage.Play{
		Name: "fraud", About: "A rule with a store and timers: a tiny payment, then a large one within a minute.", Job: job,
		In: []stage.Input{stage.In("payments",
			pay(0, "card-1", 50), pay(1, "card-2", 20), pay(2, "card-3", 90_000),
			pay(30, "card-1", 90_000),                          // an alert
			pay(90, "card-2", 80_000),                          // its minute is over
			pay(100, "card-3", 10), pay(120, "card-3", 60_000), // an alert
		)},
		Out: []stage.Output{stage.Out("alerts", 2, func(r streams.Record[string, string]) string {
			return r.Time.Format("15:04:05 ") + r.Key + ": " + r.Value
		})},
	}
}
