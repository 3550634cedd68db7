package page_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/page"
)

// shop has a table, a join, a repartition, a window and late records.
func shop() *streams.App {
	app := streams.New("shop")
	users := app.Table[string, string]("users")
	orders := app.Stream[string, string]("orders")
	orders.LeftJoinTable(users, func(o string, u streams.Maybe[string]) string { return o + u.V }, streams.As("named")).To("named-orders")
	orders.GroupBy(func(o string) string { return "item-" + o[:1] }, streams.As("by-item")).
		Windowed(streams.Tumbling(time.Minute)).Count(streams.As("per-minute")).
		Map(func(w streams.Window, k string, n int64) (string, int64) { return k, n }, streams.As("flat")).To("minutes")
	return app
}

// serve runs the shop with a page until the test ends, after n orders.
func serve(t *testing.T, n int) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	b := brokertest.Start(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := kadm.NewClient(client).CreateTopics(ctx, 2, 1, nil, "users", "orders", "named-orders", "minutes"); err != nil {
		t.Fatal(err)
	}
	addr := make(chan net.Addr, 1)
	done := make(chan error, 1)
	run, end := context.WithCancel(ctx)
	go func() {
		done <- shop().Run(run, b, streams.CommitEvery(20*time.Millisecond), streams.Workers(2),
			page.Serve("127.0.0.1:0", page.OnAddr(func(a net.Addr) { addr <- a }),
				page.Mount("GET /query/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "mounted") }))))
	}()
	stop = func() error {
		end()
		err := <-done
		done <- nil // the clean-up may come too
		cancel()
		return err
	}
	t.Cleanup(func() { stop() })
	select {
	case a := <-addr:
		url = "http://" + a.String()
	case err := <-done:
		t.Fatal("the application ended: ", err)
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	// What a worker has processed before a task left it is not among the task's
	// figures, so the work comes when each worker has its share.
	await(t, url, func(f streams.Figures) bool {
		return len(f.Workers) == 2 && len(f.Workers[0].Tasks) == 2 && len(f.Workers[1].Tasks) == 2
	})
	start := time.UnixMilli(1_000_000_000_000).Truncate(time.Minute)
	records := []*kgo.Record{{Topic: "users", Key: []byte("u0"), Value: []byte("ann"), Timestamp: start}}
	for i := range n {
		records = append(records, &kgo.Record{Topic: "orders", Key: []byte("u" + strconv.Itoa(i%10)), Value: []byte(strconv.Itoa(i)), Timestamp: start.Add(time.Duration(i) * time.Second)})
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return url, stop
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// await waits for figures that are as wanted.
func await(t *testing.T, url string, ok func(streams.Figures) bool) streams.Figures {
	t.Helper()
	for {
		_, body := get(t, url+"/figures.json")
		var f streams.Figures
		if err := json.Unmarshal([]byte(body), &f); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if f.State == streams.StateRunning && ok(f) {
			return f
		}
		if t.Context().Err() != nil {
			t.Fatalf("not as wanted: %s", body)
		}
		time.Sleep(10 * time.Millisecond) // between two looks
	}
}

// settled waits until the figures say that n records are processed.
func settled(t *testing.T, url string, n int64) streams.Figures {
	t.Helper()
	return await(t, url, func(f streams.Figures) bool {
		var processed, lag int64
		for _, w := range f.Workers {
			for _, task := range w.Tasks {
				processed += task.Processed
				for _, in := range task.Inputs {
					lag += in.Lag()
				}
			}
		}
		return processed == n && lag == 0
	})
}

// TestPage: what the page says of a job that has done its work.
func TestPage(t *testing.T) {
	t.Parallel()
	const orders = 200
	url, stop := serve(t, orders)
	f := settled(t, url, 1+2*orders) // a user, and each order twice
	nodes, stores := map[string]int64{}, map[string]int64{}
	for _, w := range f.Workers {
		for _, task := range w.Tasks {
			for _, n := range task.Nodes {
				nodes[n.Node] += n.Records
			}
			for _, s := range task.Stores {
				stores[s.Store] += s.Changelog
			}
		}
	}
	for node, want := range map[string]int64{"users": 1, "orders": orders, "named": orders, "named.to": orders, "by-item.repartitioned": orders, "per-minute": orders} {
		if nodes[node] != want {
			t.Errorf("node %s has taken %d records, want %d", node, nodes[node], want)
		}
	}
	if len(stores) != 2 || stores["per-minute"] == 0 {
		t.Errorf("stores are %v", stores)
	}
	for path, want := range map[string]string{
		"/":              `data-rate="by-item.repartitioned"`,
		"/topology.svg":  `<g class="topic inner"`,
		"/topology.json": `"store":"per-minute"`,
		"/topology.mmd":  "flowchart TD",
		"/topology.dot":  "digraph",
		"/metrics":       `millrace_streams_worker_state{app="shop",state="running",worker="1"} 1`,
		"/healthz":       `{"status":"ok","state":"running"}`,
		"/query/x":       "mounted",
	} {
		if code, body := get(t, url+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("GET %s: %d without %s:\n%s", path, code, want, body)
		}
	}
	_, svg := get(t, url+"/topology.svg")
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the drawing is no XML: %v in %s", err, svg)
		}
	}
	if code, _ := get(t, url+"/elsewhere"); code != http.StatusNotFound {
		t.Errorf("a path that is not there: %d", code)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.Get(url + "/healthz"); err == nil {
		resp.Body.Close()
		t.Error("the page answers after the end")
	}
}

func TestPageBeforeTheStart(t *testing.T) {
	t.Parallel()
	h := page.New(new(streams.Watcher))
	for path, want := range map[string]int{"/": 503, "/figures.json": 503, "/topology.svg": 503, "/healthz": 503, "/metrics": 200} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("GET %s: %d, want %d", path, w.Code, want)
		}
	}
}

// TestPageAddressInUse: a start that cannot show its page says so and starts
// nothing.
func TestPageAddressInUse(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b := brokertest.Start(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopics(t.Context(), 1, 1, nil, "users", "orders", "named-orders", "minutes"); err != nil {
		t.Fatal(err)
	}
	err = shop().Run(t.Context(), b, page.Serve(ln.Addr().String()))
	if err == nil || !strings.Contains(err.Error(), "page on "+ln.Addr().String()) {
		t.Errorf("error is %v", err)
	}
}
