package streams_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams"
)

// A topic that the application has never read is read from its end on, and a topic
// without the option from its start; after that both go on where they were.
func TestFromLatestBeginsAtTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := cluster(t)
	if _, err := kadm.NewClient(client(t, b)).CreateTopics(ctx, 1, 1, nil, "latest-new", "latest-all", "latest-out"); err != nil {
		t.Fatal(err)
	}
	in := client(t, b)
	send := func(topic, value string) {
		t.Helper()
		if err := in.ProduceSync(ctx, &kgo.Record{Topic: topic, Key: []byte(topic), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	out := client(t, b, kgo.ConsumeTopics("latest-out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	next := func() string {
		t.Helper()
		for {
			fetches := out.PollRecords(ctx, 1)
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
			for _, r := range fetches.Records() {
				return string(r.Value)
			}
		}
	}
	dir := t.TempDir()
	start := func() (stop func()) {
		app := streams.New("latest")
		app.Stream[string, string]("latest-new", streams.FromLatest()).To("latest-out")
		app.Stream[string, string]("latest-all").To("latest-out")
		run, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- app.Run(run, b, streams.StateDir(dir), streams.CommitEvery(20*time.Millisecond)) }()
		return func() {
			t.Helper()
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
	send("latest-new", "before the first start")
	send("latest-all", "one")
	stop := start()
	if got := next(); got != "one" {
		t.Errorf("first is %q", got)
	}
	// The task of the other topic has begun too, or begins behind this record: only a
	// result shows that it has, so more are sent until one comes.
	got := ""
	for i := 0; got == ""; i++ {
		send("latest-new", fmt.Sprint("two ", i))
		poll, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		for _, r := range out.PollRecords(poll, 1).Records() {
			got = string(r.Value)
		}
		cancel()
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	if !strings.HasPrefix(got, "two ") {
		t.Errorf("second is %q", got)
	}
	stop()
	send("latest-new", "while it was away")
	stop = start()
	for got = next(); strings.HasPrefix(got, "two "); got = next() {
	}
	if got != "while it was away" {
		t.Errorf("third is %q", got)
	}
	stop()
}
