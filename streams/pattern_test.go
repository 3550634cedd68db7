package streams_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// orders counts the records of all topics of orders, per key.
func orders() *streams.App {
	app := streams.New("all-orders")
	app.StreamMatching[string, string](regexp.MustCompile(`orders-[a-z]+`)).GroupByKey().Count(streams.As("per-key")).To("orders-counts-1")
	return app
}

// A topic belongs to a pattern that matches its whole name, whenever it comes, and
// records of several are taken by time; with a crash in between.
func TestStreamMatching(t *testing.T) {
	t.Parallel()
	d := streamstest.New(t, orders())
	north, south, other := d.In[string, string]("orders-north"), d.In[string, string]("orders-south"), d.In[string, string]("orders-7")
	north.At(time.UnixMilli(1), "a", "x")
	d.Crash()
	south.At(time.UnixMilli(2), "a", "x")
	other.At(time.UnixMilli(3), "a", "x")
	north.At(time.UnixMilli(4), "b", "x")
	var got []string
	for _, r := range d.Out[string, int64]("orders-counts-1").Records() {
		got = append(got, fmt.Sprintf("%s=%d", r.Key, r.Value))
	}
	if s := strings.Join(got, " "); s != "a=1 a=2 b=1" {
		t.Errorf("counts %s", s)
	}
	if text := orders().Describe(); !strings.Contains(text, "stream orders-a-z") || !strings.Contains(text, "topic /orders-[a-z]+/") {
		t.Errorf("description\n%s", text)
	}
}

// On a broker: one topic is there at the start, the other comes later.
func TestStreamMatchingOnABroker(t *testing.T) {
	t.Parallel()
	b := cluster(t)
	admin := kadm.NewClient(client(t, b))
	ctx := t.Context()
	if _, err := admin.CreateTopics(ctx, 2, 1, nil, "orders-north", "orders-counts-1"); err != nil {
		t.Fatal(err)
	}
	in, want, seen := client(t, b), map[string]int64{}, map[string]int64{}
	out := client(t, b, kgo.ConsumeTopics("orders-counts-1"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	running, err := orders().Start(ctx, b, streams.LookForTopics(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	send := func(topic string) {
		t.Helper()
		for i := range 20 {
			key := string(rune('a' + i%4))
			want[key]++
			if err := in.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte("x")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		wait(ctx, t, out, want, seen)
	}
	send("orders-north")
	if _, err := admin.CreateTopics(ctx, 2, 1, nil, "orders-south"); err != nil {
		t.Fatal(err)
	}
	send("orders-south")
	send("orders-north")
	if err := running.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}
