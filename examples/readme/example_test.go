// Package readme holds the example of the README, so that it compiles and runs.
package readme

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/streams"
)

type (
	Customer struct{ City string }
	Order    struct{ Cents int64 }
	Sale     struct {
		City  string
		Cents int64
	}
)

// shop is the part that the README shows.
func shop(ctx context.Context, b streams.Cluster, state string) error {
	app := streams.New("shop")
	customers := app.Table[string, Customer]("customers")
	app.Stream[string, Order]("orders"). // keyed by customer
						JoinTable(customers, func(o Order, c Customer) Sale { return Sale{c.City, o.Cents} }).
						GroupBy(func(s Sale) string { return s.City }, streams.As("by-city")).
						Windowed(streams.Tumbling(time.Hour, streams.Grace(5*time.Minute))).
						Aggregate(streams.Sum(func(s Sale) int64 { return s.Cents }), streams.As("sales")).
						Map(func(w streams.Window, city string, cents int64) (string, int64) {
			return city + "@" + w.Start.Format(time.RFC3339), cents
		}).
		To("sales-by-city-and-hour")
	return app.Run(ctx, b, streams.StateDir(state))
}

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	quiet := slog.New(slog.DiscardHandler)
	// Close ends the broker, after the job; with the job's context both would end at once, and its last commit fail.
	b, err := broker.Start(context.WithoutCancel(ctx), broker.Config{Logger: quiet, GroupInitialRebalanceDelay: time.Millisecond}) // in memory
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	state, err := os.MkdirTemp("", "shop-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(state)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ConsumeTopics("sales-by-city-and-hour"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopics(ctx, 1, 1, nil, "customers", "orders", "sales-by-city-and-hour"); err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, r := range []*kgo.Record{
		{Topic: "customers", Key: []byte("c1"), Value: []byte(`{"City":"Lisbon"}`), Timestamp: noon.Add(-time.Hour)},
		{Topic: "orders", Key: []byte("c1"), Value: []byte(`{"Cents":250}`), Timestamp: noon.Add(time.Minute)},
		{Topic: "orders", Key: []byte("c1"), Value: []byte(`{"Cents":100}`), Timestamp: noon.Add(2 * time.Minute)},
	} {
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			fmt.Println(err)
			return
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- shop(ctx, b, state) }()
	patience, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	for cents := int64(0); cents < 350; {
		fetches := client.PollFetches(patience)
		if patience.Err() != nil {
			fmt.Println("no result within a minute")
			return
		}
		fetches.EachRecord(func(r *kgo.Record) {
			for _, c := range r.Value {
				cents = cents<<8 | int64(c)
			}
			if cents == 350 {
				fmt.Println(string(r.Key), cents)
			} else {
				cents = 0 // the sum before the second order
			}
		})
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		fmt.Println(err)
	}
	// Output: Lisbon@2026-11-29T12:00:00Z 350
}
