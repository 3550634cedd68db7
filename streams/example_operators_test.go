package streams_test

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

type payment struct{ Order string }

func ExampleStream_LeftJoin() {
	app := streams.New("shop")
	orders, payments := app.Stream[string, string]("orders"), app.Stream[string, payment]("payments")
	orders.LeftJoin(payments, func(order string, p streams.Maybe[payment]) string {
		return fmt.Sprintf("%s paid: %v", order, p.OK)
	}, streams.After(5*time.Minute, streams.Grace(time.Minute), streams.Strict()), streams.As("order-pay")).To("paid")

	d := streamstest.New(nil, app)
	t0 := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	d.In[string, string]("orders").At(t0, "1", "book")
	d.In[string, string]("orders").At(t0, "2", "lamp")
	d.In[string, payment]("payments").At(t0.Add(time.Minute), "2", payment{"2"})
	d.In[string, string]("orders").At(t0.Add(time.Hour), "3", "desk") // time has passed for order 1
	for _, r := range d.Out[string, string]("paid").Records() {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// 2 lamp paid: true
	// 1 book paid: false
}

func ExampleGrouped_Sessions() {
	app := streams.New("clicks")
	app.Stream[string, string]("clicks").GroupByKey().
		Sessions(30*time.Minute, streams.Grace(time.Minute)).
		Count(streams.As("visits")).
		OnClose().
		Map(func(w streams.Window, user string, n int64) (string, string) {
			return user, fmt.Sprintf("%d clicks in %v", n, w.End.Sub(w.Start).Round(time.Second))
		}).To("visits")

	d := streamstest.New(nil, app)
	t0 := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	clicks := d.In[string, string]("clicks")
	clicks.At(t0, "ann", "/")
	clicks.At(t0.Add(20*time.Minute), "ann", "/cart")
	clicks.At(t0.Add(3*time.Hour), "bob", "/")
	for _, r := range d.Out[string, string]("visits").Records() {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// ann 2 clicks in 20m0s
}
