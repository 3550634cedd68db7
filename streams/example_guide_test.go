package streams_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/streamstest"
)

// The parts of the guide (docs/streams.md) that no other example has.

// wordCount is the guide's first job.
func wordCount() *streams.App {
	app := streams.New("words")
	app.Stream[string, string]("lines").
		FlatMapValues(strings.FieldsSeq).
		GroupBy(strings.ToLower).
		Count(streams.As("words")).
		To("counts")
	return app
}

// runOn runs a job on brokers elsewhere.
func runOn(ctx context.Context, app *streams.App, dir string, log *slog.Logger) error {
	err := app.Run(ctx, streams.Brokers("kafka1:9092", "kafka2:9092"),
		streams.StateDir(dir), // stores on disk, and the identity of this process
		streams.Workers(4),
		streams.CommitEvery(200*time.Millisecond),
		streams.Logger(log))
	var f *streams.Failure
	switch {
	case errors.As(err, &f):
		log.Error("a record failed", "node", f.Node, "topic", f.Topic, "partition", f.Partition, "offset", f.Offset, "error", f.Err)
	case errors.Is(err, streams.ErrFenced), errors.Is(err, streams.ErrLocked):
		log.Error("another process has this identity", "error", err)
	}
	return err
}

func ExampleApp_Run() {
	ctx, stop := context.WithTimeout(context.Background(), 0) // ends at once
	defer stop()
	dir, err := os.MkdirTemp("", "words-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	err = runOn(ctx, wordCount(), dir, slog.New(slog.DiscardHandler))
	fmt.Println(errors.As(err, new(*streams.Failure)))
	// Output: false
}

// Celsius travels as text, "21.5", for a program that expects it so.
type Celsius float64

func ExampleApp_RegisterSerde() {
	app := streams.New("weather")
	app.RegisterSerde(serde.Of(
		func(dst []byte, c Celsius) ([]byte, error) {
			return strconv.AppendFloat(dst, float64(c), 'f', 1, 64), nil
		},
		func(b []byte) (Celsius, error) {
			c, err := strconv.ParseFloat(string(b), 64)
			return Celsius(c), err
		},
	))
	app.Stream[string, Celsius]("readings").
		Filter(func(c Celsius) bool { return c > 30 }).
		To("heat")

	d := streamstest.New(nil, app)
	d.In[string, Celsius]("readings").Send("oslo", 21.5)
	d.In[string, Celsius]("readings").Send("faro", 33)
	for _, r := range d.Written() {
		fmt.Printf("%s %s\n", r.Key, r.Value)
	}
	// Output: faro 33.0
}

// Names of stores and topics follow the path, or are given.
func ExampleAs() {
	app := streams.New("shop")
	perUser := app.Stream[string, Order]("orders").
		GroupBy(func(o Order) string { return o.User }, streams.As("by-user")) // topic shop-by-user-repartition
	perUser.Count(streams.As("orders-per-user")).To("counts") // store, and topic shop-orders-per-user-changelog
	for line := range strings.Lines(app.Describe()) {
		if strings.HasPrefix(line, "  shop-") {
			fmt.Print(line)
		}
	}
	// Output:
	//   shop-by-user-repartition: repartition (string, streams_test.Order)
	//   shop-orders-per-user-changelog: changelog
}

// A row that comes later changes nothing that was joined before.
func ExampleStream_JoinTable() {
	app := streams.New("cities")
	users := app.Table[string, User]("users")
	app.Stream[string, Order]("orders"). // keyed by user, as the table is
						JoinTable(users, func(o Order, u User) string { return u.City }).
						To("cities")

	d := streamstest.New(nil, app)
	noon := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	rows, orders := d.In[string, User]("users"), d.In[string, Order]("orders")
	rows.At(noon, "ann", User{"Oslo"})
	orders.At(noon.Add(1*time.Second), "ann", Order{"ann", 10})
	rows.At(noon.Add(2*time.Second), "ann", User{"Faro"})
	orders.At(noon.Add(3*time.Second), "ann", Order{"ann", 20})
	for _, r := range d.Out[string, string]("cities").Records() {
		fmt.Println(r.Value)
	}
	// Output:
	// Oslo
	// Faro
}

// One operator says what becomes of its failures, all others fail the job.
func ExampleRetry() {
	app := streams.New("prices")
	price := func(_ context.Context, r *streams.Record[string, string]) (int64, error) {
		return strconv.ParseInt(r.Value, 10, 64) // or a call that may time out
	}
	app.Stream[string, string]("in").
		TryMapValues(price, streams.OnError(streams.Always(
			streams.Retry(3, 10*time.Millisecond).Then(streams.DeadLetter("prices-dead"))))).
		To("out")

	d := streamstest.New(nil, app)
	d.In[string, string]("in").Send("a", "12")
	d.In[string, string]("in").Send("b", "twelve")
	for _, r := range d.Written() {
		fmt.Printf("%s: %s\n", r.Topic, r.Key)
	}
	// Output:
	// out: a
	// prices-dead: b
}
