package streams_test

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// fraud raises an alert when a small payment is followed by a large one of the same
// card within a minute. What it knows of a card is in a store, and a timer by stream
// time forgets it; so both survive a crash.
type fraud struct {
	small  streams.KVRef[string, float64]
	forget streams.TimersRef[string]
	out    *streams.Emitter[string, string]
}

func (f *fraud) Init(_ streams.TaskContext, out *streams.Emitter[string, string]) error {
	f.out = out
	out.OnTimer(f.forget, func(c streams.TaskContext, card string, _ time.Time) error {
		return f.small.In(c).Delete(card)
	})
	return nil
}

func (f *fraud) Process(c streams.TaskContext, r *streams.Record[string, float64]) error {
	small, forget := f.small.In(c), f.forget.In(c)
	amount, seen, err := small.Get(r.Key)
	if err != nil {
		return err
	}
	if seen && r.Value > 500 {
		f.out.Emit(r.Key, fmt.Sprintf("%.0f after %.0f", r.Value, amount))
	}
	if r.Value < 1 {
		if err := small.Put(r.Key, r.Value); err != nil {
			return err
		}
		return forget.Set(r.Key, r.Time.Add(time.Minute))
	}
	if err := small.Delete(r.Key); err != nil {
		return err
	}
	return forget.Cancel(r.Key)
}

func (f *fraud) Close() error { return nil }

func fraudApp() *streams.App {
	app := streams.New("fraud")
	small := app.Store[string, float64]("small-payments")
	forget := app.Timers[string]("forget", streams.StreamTime)
	app.Stream[string, float64]("payments").
		Process(func() streams.Processor[string, float64, string, string] { return &fraud{small: small, forget: forget} },
			streams.Use(small, forget), streams.As("fraud")).
		To("alerts")
	return app
}

// A processor with a store and timers by key.
func ExampleStream_Process() {
	d := streamstest.New(nil, fraudApp())
	payments, alerts := d.In[string, float64]("payments"), d.Out[string, string]("alerts")
	noon := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	payments.At(noon, "ann", 0.5)
	payments.At(noon.Add(time.Second), "bob", 0.2)
	d.Crash()
	payments.At(noon.Add(30*time.Second), "ann", 900) // within the minute
	payments.At(noon.Add(2*time.Minute), "eve", 20)   // the minute of bob is over
	payments.At(noon.Add(2*time.Minute), "bob", 900)
	for _, r := range alerts.Records() {
		fmt.Println(r.Time.Format("15:04:05"), r.Key, r.Value)
	}
	// Output:
	// 12:00:30 ann 900 after 0
}

// Each order with the title of its item: the item's key is in the order.
func ExampleTable_JoinFK() {
	type order struct {
		Item  string
		Count int
	}
	app := streams.New("lines")
	items := app.Table[string, string]("items")
	app.Table[string, order]("orders").JoinFK(items,
		func(_ string, o order) string { return o.Item },
		func(o order, title string) string { return fmt.Sprint(o.Count, " ", title) }, streams.As("line")).
		To("order-lines")

	d := streamstest.New(nil, app)
	orders, titles, lines := d.In[string, order]("orders"), d.In[string, string]("items"), d.Out[string, string]("order-lines")
	noon := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	orders.At(noon, "o1", order{"i7", 2})
	titles.At(noon, "i7", "tea")
	titles.At(noon.Add(time.Minute), "i7", "green tea")
	for _, r := range lines.Records() {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// o1 2 tea
	// o1 2 green tea
}

// How often a customer ordered within any ten minutes: a window for each set of
// orders that fits into them.
func ExampleSliding() {
	app := streams.New("bursts")
	app.Stream[string, string]("orders").GroupByKey().
		Windowed(streams.Sliding(10*time.Minute, streams.Grace(time.Minute))).
		Count(streams.As("orders-in-10m")).
		OnClose().
		Filter(func(n int64) bool { return n >= 2 }).
		Map(func(w streams.Window, who string, n int64) (string, string) {
			return who, fmt.Sprint(n, " from ", w.Start.Format("15:04"))
		}).
		To("bursts")

	d := streamstest.New(nil, app)
	orders, bursts := d.In[string, string]("orders"), d.Out[string, string]("bursts")
	noon := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	for _, minute := range []int{0, 4, 12, 60} {
		orders.At(noon.Add(time.Duration(minute)*time.Minute), "ann", "tea")
	}
	for _, r := range bursts.Records() {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// ann 2 from 11:54
	// ann 2 from 12:02
}

// Each order at the price of its own time, though the price comes late.
func ExampleVersioned() {
	app := streams.New("totals")
	prices := app.Table[string, int]("prices", streams.Versioned(24*time.Hour))
	app.Stream[string, int]("orders").
		JoinTable(prices, func(count, price int) int { return count * price }, streams.Grace(10*time.Second)).
		To("totals")

	d := streamstest.New(nil, app)
	price, orders, totals := d.In[string, int]("prices"), d.In[string, int]("orders"), d.Out[string, int]("totals")
	noon := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	price.At(noon, "tea", 2)
	orders.At(noon.Add(15*time.Second), "tea", 10)
	price.At(noon.Add(12*time.Second), "tea", 3) // held at the time of the order, told after it
	orders.At(noon.Add(time.Minute), "tea", 1)   // the first has waited long enough
	for _, r := range totals.Records() {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// tea 30
}
