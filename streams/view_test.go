package streams_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/streams"
)

// wordApp counts words, and per minute.
func wordApp(id string) (*streams.App, streams.Table[string, int64], streams.WTable[string, int64]) {
	app := streams.New(id)
	words := app.Stream[string, string]("lines").FlatMapValues(strings.FieldsSeq).GroupBy(func(w string) string { return w }, streams.As("word"))
	counts := words.Count(streams.As("counts"))
	counts.To("out")
	minutes := words.Windowed(streams.Tumbling(time.Minute, streams.Grace(time.Hour))).Count(streams.As("minutes"))
	return app, counts, minutes
}

// served runs an application whose queries are answered at an address of its own.
func served(t *testing.T, app *streams.App, b *broker.Broker, opts ...streams.RunOpt) *streams.Running {
	t.Helper()
	var handler atomic.Pointer[http.Handler]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := handler.Load(); h != nil {
			(*h).ServeHTTP(w, r)
			return
		}
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	r, err := app.Start(context.Background(), b, append([]streams.RunOpt{streams.QueryAddr(server.URL), streams.StateDir(t.TempDir())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	h := r.Queries()
	handler.Store(&h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.Close(ctx, streams.LeaveGroup()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// What is asked for in one process is found, wherever it is: by key, by range in order
// of keys, by window, typed and over HTTP.
func TestViewsFindRowsWhereverTheyAre(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	b := brokertest.Start(t, brokertest.Configure(func(c *broker.Config) { c.GroupInitialRebalanceDelay = time.Millisecond }))
	createTopics(t, b, 4, "lines", "out")
	app1, counts1, minutes1 := wordApp("views")
	app2, counts2, _ := wordApp("views")
	one := served(t, app1, b, quick)
	two := served(t, app2, b, quick)
	at := time.Date(2001, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range 60 {
		produce(t, b, "lines", fmt.Sprint(i), fmt.Sprintf("w%02d all", i%20), at.Add(time.Duration(i)*time.Second*2))
	}
	v1, v2 := counts1.View(one), counts2.View(two)
	// Both processes have a part of it.
	for !here(t, v1) || !here(t, v2) {
		if ctx.Err() != nil {
			t.Fatal("the second process gets nothing")
		}
		time.Sleep(20 * time.Millisecond)
	}
	await(t, ctx, func() bool {
		n, sum := int64(0), int64(0)
		for row, err := range v1.All(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			n, sum = n+1, sum+row.Value
		}
		return n == 21 && sum == 120
	})
	for i := range 20 {
		for _, v := range []streams.View[string, int64]{v1, v2} {
			n, ok, err := v.Get(ctx, fmt.Sprintf("w%02d", i))
			if err != nil || !ok || n != 3 {
				t.Errorf("w%02d is %d, %v, %v", i, n, ok, err)
			}
		}
	}
	if _, ok, err := v2.Get(ctx, "nobody"); ok || err != nil {
		t.Errorf("a word that was never there: %v, %v", ok, err)
	}
	var keys []string
	for row, err := range v2.Range(ctx, "w05", "w09") {
		if err != nil || row.Value != 3 {
			t.Fatalf("%v, %v", row, err)
		}
		keys = append(keys, row.Key)
	}
	if got := fmt.Sprint(keys); got != "[w05 w06 w07 w08]" {
		t.Errorf("range: %s", got)
	}
	var windows []string
	for row, err := range minutes1.View(one).Fetch(ctx, "all", at, at.Add(time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		windows = append(windows, fmt.Sprintf("%s %d", row.Key.Window.Start.Format("15:04"), row.Value))
	}
	if got := fmt.Sprint(windows); got != "[12:00 30 12:01 30]" {
		t.Errorf("windows: %s", got)
	}
	if n, ok, err := minutes1.View(one).Get(ctx, "w00", at.Add(time.Minute)); n != 1 || !ok || err != nil {
		t.Errorf("a window: %d, %v, %v", n, ok, err)
	}
	owner, err := v1.Owner("all")
	if err != nil || !owner.Known || owner.Addr == "" {
		t.Errorf("owner: %+v, %v", owner, err)
	}
	overHTTP(t, owner.Addr)
	if _, _, err := counts1.View(two).Get(ctx, "all"); !errors.Is(err, streams.ErrNoView) {
		t.Errorf("a table of another application: %v", err)
	}
}

// overHTTP asks as people do.
func overHTTP(t *testing.T, addr string) {
	t.Helper()
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/counts?key=w07", 200, `"key":"w07","value":3`},
		{"/counts?key=nobody", 404, "no such key"},
		{"/nothing?key=a", 404, "no such store"},
		{"/counts?from=w1&to=w2&limit=3", 200, `"key":"w12"`},
		{"/counts?limit=x", 400, "limit"},
		{"/minutes?from=2001-01-01T12:01:00Z&to=2001-01-01T12:02:00Z", 200, `"start":"2001-01-01T12:01:00Z","end":"2001-01-01T12:02:00Z","value":30`},
		{"/minutes?key=all", 400, "range"},
		{"/", 200, `{"name":"counts","kind":"table (string, int64)","partitions":4}`},
	} {
		status, body := get(t, addr+c.path)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.path, status, body, c.status, c.want)
		}
		if c.status == 200 {
			for line := range strings.Lines(body) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%s: %q is no JSON", c.path, line)
				}
			}
		}
	}
}

func here(t *testing.T, v streams.View[string, int64]) bool {
	t.Helper()
	for i := range 20 {
		o, err := v.Owner(fmt.Sprintf("w%02d", i))
		if err != nil {
			t.Fatal(err)
		}
		if o.Here {
			return true
		}
	}
	return false
}

func await(t *testing.T, ctx context.Context, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("it does not come to that")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Pitfall 40 (KAFKA-20496): what a transaction that is open has written is seen by no
// query, and what it took back never was.
func TestPitfall40QueriesNeverSeeWhatWasAborted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	b := brokertest.Start(t)
	createTopics(t, b, 1, "in", "out")
	app := streams.New("aborted")
	var added, commits atomic.Int64
	var failed atomic.Bool
	counts := app.Stream[string, string]("in").GroupByKey().TryAggregate(func() int64 { return 0 },
		func(_ context.Context, r *streams.Record[string, string], n int64) (int64, error) {
			if r.Value == "fails once" && failed.CompareAndSwap(false, true) {
				return n, errors.New("the function fails")
			}
			added.Add(1)
			return n + 1, nil
		}, streams.As("counts"))
	counts.To("out")
	r := served(t, app, b, streams.CommitEvery(2*time.Second), streams.OnProgress(func(streams.Progress) { commits.Add(1) }),
		streams.OnUncaught(func(error) streams.Uncaught { return streams.ReplaceWorker }))
	v := counts.View(r)
	produce(t, b, "in", "k", "counts", time.UnixMilli(1))
	if n, ok, err := counts.View(r, streams.Seen("in", 0, 0)).Get(ctx, "k"); n != 1 || !ok || err != nil {
		t.Fatalf("committed: %d, %v, %v", n, ok, err)
	}
	before := commits.Load()
	produce(t, b, "in", "k", "counts", time.UnixMilli(2))
	await(t, ctx, func() bool { return added.Load() == 2 })
	n, _, err := v.Get(ctx, "k")
	if commits.Load() == before && (n != 1 || err != nil) {
		t.Errorf("in an open transaction a query sees %d, %v, want the 1 that is committed", n, err)
	}
	produce(t, b, "in", "k", "fails once", time.UnixMilli(3))
	for last := n; ; {
		n, ok, err := v.Get(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if !ok || n < last || n > 3 || n == 3 && !failed.Load() {
			t.Fatalf("after %d a query sees %d, %v", last, n, ok)
		}
		if last = n; n == 3 {
			break
		}
	}
	if n := added.Load(); n != 4 && n != 3 {
		t.Errorf("%d records were added, want the aborted one twice", n)
	}
}

// Views of tables that have nothing to look at say so.
func TestViewsOfNothing(t *testing.T) {
	t.Parallel()
	app := streams.New("nothing")
	table := app.Table[string, string]("t")
	filtered := table.Filter(func(string) bool { return true })
	versioned := app.Table[string, string]("v", streams.Versioned(time.Hour))
	ctx := context.Background()
	for name, err := range map[string]error{
		"not running": second(table.View(nil).Owner("k")), "filtered": second(filtered.View(nil).Owner("k")),
		"versions as rows": second(versioned.View(nil).Owner("k")),
	} {
		if !errors.Is(err, streams.ErrNoView) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, _, err := table.VersionsView(nil).Get(ctx, "k"); !errors.Is(err, streams.ErrNoView) {
		t.Errorf("rows as versions: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// quick commits often.
var quick = streams.CommitEvery(20 * time.Millisecond)

func createTopics(t *testing.T, b streams.Cluster, partitions int32, names ...string) {
	t.Helper()
	admin := kadm.NewClient(client(t, b))
	resp, err := admin.CreateTopics(t.Context(), partitions, 1, nil, names...)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func produce(t *testing.T, b streams.Cluster, topic, key, value string, at time.Time) {
	t.Helper()
	err := client(t, b).ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value), Timestamp: at}).FirstErr()
	if err != nil {
		t.Fatal(err)
	}
}
