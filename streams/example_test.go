package streams_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// Words are counted, also over a crash.
func Example() {
	app := streams.New("words")
	app.Stream[string, string]("lines").
		FlatMapValues(strings.FieldsSeq).
		GroupBy(strings.ToLower).
		Count(streams.As("words")).
		To("counts")

	d := streamstest.New(nil, app, streamstest.Partitions(3))
	lines := d.In[string, string]("lines")
	counts := d.Out[string, int64]("counts")
	lines.Send("", "To be or not")
	d.Crash()
	lines.Send("", "to be")
	for _, r := range counts.Records() {
		fmt.Println(r.Key, r.Value)
	}
	// Unordered output:
	// to 1
	// be 1
	// or 1
	// not 1
	// to 2
	// be 2
}

// Order is a value that travels as JSON.
type Order struct {
	User   string
	Amount float64
}

// The spend of each user in each minute, one final result each.
func Example_windows() {
	app := streams.New("shop")
	app.Stream[string, Order]("orders").
		GroupBy(func(o Order) string { return o.User }).
		Windowed(streams.Tumbling(time.Minute, streams.Grace(10*time.Second))).
		Aggregate(streams.Sum(func(o Order) float64 { return o.Amount }), streams.As("spend-1m")).
		OnClose().
		Map(func(w streams.Window, user string, sum float64) (string, float64) {
			return user + "@" + w.Start.Format("15:04"), sum
		}).
		To("spend")

	d := streamstest.New(nil, app)
	orders := d.In[string, Order]("orders")
	spend := d.Out[string, float64]("spend")
	noon := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	orders.At(noon.Add(1*time.Second), "1", Order{"ann", 10})
	orders.At(noon.Add(2*time.Second), "2", Order{"bob", 5})
	orders.At(noon.Add(61*time.Second), "3", Order{"ann", 7})
	orders.At(noon.Add(59*time.Second), "4", Order{"ann", 2.5}) // out of order, within grace
	orders.At(noon.Add(70*time.Second), "5", Order{"bob", 1})   // closes 12:00
	orders.At(noon.Add(58*time.Second), "6", Order{"ann", 100}) // late
	for _, r := range spend.Records() {
		fmt.Println(r.Key, r.Value)
	}
	fmt.Println("late:", d.Dropped("spend-1m", "late"))
	// Output:
	// ann@12:00 12.5
	// bob@12:00 5
	// late: 1
}

// User is a row of the table that orders are joined with.
type User struct{ City string }

// Each order meets the user as known at that moment.
func Example_join() {
	app := streams.New("cities")
	users := app.Table[string, User]("users")
	app.Stream[string, Order]("orders").
		SelectKey(func(o Order) string { return o.User }).
		JoinTable(users, func(o Order, u User) string { return fmt.Sprintf("%.2f from %s", o.Amount, u.City) }).
		To("enriched")

	d := streamstest.New(nil, app, streamstest.Partitions(2))
	t := d.Now()
	d.In[string, User]("users").At(t, "ann", User{"Oslo"})
	d.In[string, Order]("orders").At(t, "1", Order{"ann", 10})
	d.In[string, Order]("orders").At(t, "2", Order{"cem", 3}) // nobody knows cem
	for _, r := range d.Out[string, string]("enriched").Records() {
		fmt.Println(r.Key, r.Value)
	}
	// Output:
	// ann 10.00 from Oslo
}

// What a function refuses goes to a dead-letter topic, with all that is needed
// to find the record again.
func ExampleOnError() {
	app := streams.New("numbers")
	app.Stream[string, string]("in").
		TryMapValues(func(_ context.Context, r *streams.Record[string, string]) (int64, error) {
			return strconv.ParseInt(r.Value, 10, 64)
		}, streams.OnError(func(_ context.Context, f streams.Failure) streams.Decision {
			if errors.Is(f.Err, strconv.ErrRange) {
				return streams.Fail()
			}
			return streams.DeadLetter("dead")
		})).
		To("out")

	d := streamstest.New(nil, app)
	in := d.In[string, string]("in")
	in.Send("a", "1")
	in.Send("b", "one")
	err := in.Try(d.Now(), "c", "99999999999999999999")
	for _, r := range d.Out[string, string]("dead").Records() {
		fmt.Println(r.Key, r.Value, "from", r.Headers.Get("__streams.errors.topic"), r.Headers.Get("__streams.errors.offset"))
	}
	fmt.Println(err)
	// Output:
	// b one from in 1
	// process at node in.map-values, record in-0@2: strconv.ParseInt: parsing "99999999999999999999": value out of range
}

// A description is kept with a release and checks the next one.
func ExampleApp_CheckUpgrade() {
	v1 := streams.New("shop")
	v1.Stream[string, string]("orders").GroupByKey().Count().To("counts")

	v2 := streams.New("shop")
	v2.Stream[string, string]("orders").Filter(func(v string) bool { return v != "" }).GroupByKey().Count().To("counts")

	fmt.Println(v2.CheckUpgrade(v1.Describe()))
	// Output:
	// topology is no upgrade: store orders.count is gone and orders.filter.count (rows (string, int64)) is new and would start empty; if it is the same, keep its name with As
}

func ExampleApp_Describe() {
	app := streams.New("shop")
	users := app.Table[string, User]("users")
	app.Stream[string, Order]("orders").
		SelectKey(func(o Order) string { return o.User }, streams.As("by-user")).
		JoinTable(users, func(o Order, u User) string { return u.City }, streams.As("city")).
		To("cities")
	fmt.Print(app.Describe())
	// Output:
	// application shop
	//
	// sub-topology users
	//   table users (string, streams_test.User) from topic users, store users
	//   repartitioned by-user.repartitioned (string, streams_test.Order) from topic shop-by-user-repartition
	//     join-table city (string, string), reads store users
	//       to city.to (string, string) to topic cities
	//   same number of partitions: shop-by-user-repartition, users
	//
	// sub-topology orders
	//   stream orders (string, streams_test.Order) from topic orders
	//     select-key by-user (string, streams_test.Order)
	//       repartition by-user.repartition (string, streams_test.Order) to topic shop-by-user-repartition
	//
	// stores
	//   users: rows (string, streams_test.User); on disk, source topic users as changelog
	//
	// internal topics
	//   shop-by-user-repartition: repartition (string, streams_test.Order)
}

func ExampleFold() {
	app := streams.New("last-two")
	app.Stream[string, string]("in").GroupByKey().
		Aggregate(streams.Fold(func() []string { return nil }, func(last []string, v string) []string {
			return slices.Clone(append(last, v)[max(0, len(last)-1):])
		})).
		To("out")

	d := streamstest.New(nil, app)
	in := d.In[string, string]("in")
	for _, v := range []string{"a", "b", "c"} {
		in.Send("k", v)
	}
	for _, r := range d.Out[string, []string]("out").Records() {
		fmt.Println(r.Value)
	}
	// Output:
	// [a]
	// [a b]
	// [b c]
}
