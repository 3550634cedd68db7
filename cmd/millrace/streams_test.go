package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
)

// TestStreamsCommands: what the commands show of an application that has run, and
// that a reset lets it begin anew.
func TestStreamsCommands(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	on := func(args ...string) []string { return append([]string{"streams", "--brokers", s.addr}, args...) }
	for _, topic := range []string{"lines", "counts"} {
		ok(t, "", "topic", "create", "--brokers", s.addr, topic)
	}
	ok(t, "a rose is\na rose\n", "produce", "--brokers", s.addr, "lines")
	app := func() *streams.App {
		app := streams.New("words")
		app.Stream[string, string]("lines").FlatMapValues(strings.FieldsSeq).GroupBy(strings.ToLower, streams.As("by-word")).
			Count(streams.As("counts")).To("counts")
		return app
	}
	run := func() (stop func()) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		done := make(chan error, 1)
		go func() {
			done <- app().Run(ctx, streams.Brokers(s.addr), streams.CommitEvery(20*time.Millisecond))
		}()
		for {
			o := execute(t, "", on("lag", "words", "-o", "json")...)
			behind := strings.Count(o.out, `"lag":`) - strings.Count(o.out, `"lag":0}`)
			if o.code == 0 && strings.Count(o.out, "\n") == 2 && behind == 0 {
				break
			}
			select {
			case err := <-done:
				t.Fatalf("the application ended: %v; %s", err, o.errout)
			case <-ctx.Done():
				t.Fatal(o.out, o.errout)
			case <-time.After(10 * time.Millisecond): // between two looks
			}
		}
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	}
	stop := run()
	if got := ok(t, "", on("list")...); got != "words\tStable\t1 worker\t1 store\t2 internal topics\n" {
		t.Errorf("list prints %q", got)
	}
	if o := execute(t, "", on("reset", "words", "--yes")...); o.code != 1 || !strings.Contains(o.errout, "the application is live") {
		t.Errorf("a reset of a live application: %d, %s", o.code, o.errout)
	}
	stop()
	if got := ok(t, "", on("describe", "words")...); got != app().Describe() {
		t.Errorf("describe prints %q", got)
	}
	if got := ok(t, "", on("describe", "words", "--format", "mermaid")...); got != app().Mermaid() {
		t.Errorf("describe prints %q", got)
	}
	if got := ok(t, "", on("lag", "words")...); !strings.Contains(got, "lines\tlines-0\tcommitted 2\tend 2\tlag 0\n") {
		t.Errorf("lag prints %q", got)
	}
	if got := ok(t, "", on("lag", "words", "--internal-topics")...); !strings.Contains(got, "words-counts-changelog\t1 partition\t") {
		t.Errorf("lag prints %q", got)
	}
	var row struct {
		Key, Value string
		Partition  int32
	}
	if err := json.Unmarshal([]byte(ok(t, "", on("state", "words", "counts", "--key", "rose", "-o", "json")...)), &row); err != nil || row.Value != "2" {
		t.Errorf("the state is %+v, %v", row, err)
	}
	if got := ok(t, "", on("state", "words", "counts", "--prefix", "i")...); !strings.HasPrefix(got, "0\tis\t1\t") {
		t.Errorf("state prints %q", got)
	}
	plan := "read lines-0 from offset 0 (was 2)\n" + "delete topic words-by-word-repartition\n" + "delete topic words-counts-changelog\n"
	if got := ok(t, "", on("reset", "words", "--dry-run")...); strings.ReplaceAll(got, "would ", "") != plan || !strings.HasPrefix(got, "would ") {
		t.Errorf("reset prints %q", got)
	}
	if got := ok(t, "", on("reset", "words", "--yes")...); got != plan {
		t.Errorf("reset prints %q", got)
	}
	if got := ok(t, "", on("describe", "words")...); got != "application words was reset and has not started since\n" {
		t.Errorf("describe prints %q", got)
	}
	run()()
	if got := ok(t, "", on("state", "words", "counts", "--key", "rose")...); !strings.HasPrefix(got, "0\trose\t2\t") {
		t.Errorf("after the reset state prints %q", got)
	}
}

func TestStreamsUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"reset words", "say --dry-run"},
		{"reset words --dry-run --yes", "say --dry-run"},
		{"reset words --yes --to noon", "must be earliest or latest"},
		{"reset words --yes --since noon", "must be a time like"},
		{"reset words --yes --by -1h", "must be above 0"},
		{"reset words --yes --to latest --by 1h", "exclude each other"},
		{"describe words --format png", "must be text, mermaid or dot"},
		{"state words", "an application and a store"},
		{"state words counts --limit -1", "must not be negative"},
		{"lags words", `did you mean "lag"?`},
	} {
		o := execute(t, "", append([]string{"streams"}, strings.Fields(c.args)...)...)
		if o.code != 2 || !strings.Contains(o.errout, c.want) {
			t.Errorf("streams %s: exit code %d, %q; want 2 and %q", c.args, o.code, o.errout, c.want)
		}
	}
}
