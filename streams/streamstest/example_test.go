package streamstest_test

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// A count per key and minute, with a crash in the middle. In a test, pass t in
// place of nil.
func ExampleNew() {
	app := streams.New("clicks")
	app.Stream[string, string]("clicks").GroupByKey().
		Windowed(streams.Tumbling(time.Minute)).
		Count(streams.As("per-minute")).
		OnClose().
		Map(func(w streams.Window, user string, n int64) (string, int64) { return user, n }).
		To("counts")

	d := streamstest.New(nil, app)
	clicks, counts := d.In[string, string]("clicks"), d.Out[string, int64]("counts")
	noon := time.Date(2001, 7, 14, 12, 0, 0, 0, time.UTC)
	clicks.At(noon, "ann", "/")
	clicks.At(noon.Add(10*time.Second), "ann", "/cart")
	d.Crash()
	clicks.At(noon.Add(time.Minute), "bob", "/") // closes the first minute
	clicks.At(noon.Add(59*time.Second), "ann", "/late")
	for _, r := range counts.Records() {
		fmt.Println(r.Key, r.Value, r.Time.Format("15:04:05"))
	}
	fmt.Println("late:", d.Dropped("per-minute", "late"))
	// Output:
	// ann 2 12:00:10
	// late: 1
}

// With commits left to the test, a crash can come between processing and
// commit: nothing of the transaction is seen, and it is done again.
func ExampleManualCommit() {
	app := streams.New("upper")
	app.Stream[string, string]("in").MapValues(func(v string) string { return v + "!" }).To("out")

	d := streamstest.New(nil, app, streamstest.ManualCommit())
	d.In[string, string]("in").Send("k", "hello")
	out := d.Out[string, string]("out")
	d.Process()
	fmt.Println("processed:", len(out.Records()))
	d.Crash()
	d.Settle()
	fmt.Println("committed:", out.Records()[0].Value)
	// Output:
	// processed: 0
	// committed: hello!
}
