package streams_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
)

var update = flag.Bool("update", false, "write the files that drawings are compared with")

// drawn is an application with something of every kind that a drawing shows.
func drawn(opts ...streams.Opt) *streams.App {
	app := streams.New("shop", opts...)
	regions := app.GlobalTable[string, string]("regions")
	users := app.Table[string, string]("users")
	notes := app.Store[string, int]("notes")
	orders := app.Stream[string, string]("orders")
	orders.JoinTable(users, func(o, u string) string { return o + u }).To("named-orders")
	orders.GroupBy(func(o string) string { return o }, streams.As("by-item")).
		Windowed(streams.Tumbling(time.Minute)).Count(streams.As("per-minute")).OnClose().
		Map(func(_ streams.Window, k string, n int64) (string, int64) { return k, n }).To("minutes")
	app.Stream[string, string]("visits").
		JoinGlobal(regions, func(k, _ string) string { return k }, func(v, r string) string { return v + r }).
		TryFilter(always, streams.Use(notes)).
		Route(func(k, _ string) string { return k })
	return app
}

func TestDrawings(t *testing.T) {
	app := drawn()
	for name, got := range map[string]string{"shop.mmd": app.Mermaid(), "shop.dot": app.DOT(), "shop.txt": app.Describe()} {
		file := filepath.Join("testdata", "describe", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestDrawingOfMistakes(t *testing.T) {
	app := streams.New("bad app")
	app.Stream[string, chan int]("in").To("out")
	for sign, drawing := range map[string]string{"%% ": app.Mermaid(), "// ": app.DOT()} {
		for line := range strings.Lines(drawing) {
			if !strings.HasPrefix(line, sign) {
				t.Errorf("line %q is no comment of a drawing", line)
			}
		}
		if !strings.Contains(drawing, "no serde for type chan int") {
			t.Errorf("the mistake is not in %q", drawing)
		}
	}
}

func TestRequireNames(t *testing.T) {
	count := func(name, key streams.Opt) error {
		app := streams.New("a", streams.RequireNames())
		app.Stream[string, string]("in").GroupBy(identity[string], key).Count(name).To("out")
		_, err := app.Topology()
		return err
	}
	if err := count(streams.As("n"), streams.As("by")); err != nil {
		t.Error(err)
	}
	err := count(streams.Opt{}, streams.Opt{})
	for _, want := range []string{
		"node in.group-by.repartitioned: the repartition topic a-in.group-by-repartition has no name of its own",
		"node in.group-by.count: its store has no name of its own",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	// What follows from a name that was given is named.
	app := streams.New("a", streams.RequireNames())
	left, right := app.Stream[string, string]("l"), app.Stream[string, string]("r")
	left.Join(right, func(a, b string) string { return a + b }, streams.Within(time.Minute), streams.As("pairs")).To("out")
	items := app.Table[string, string]("items")
	app.Table[string, string]("orders").JoinFK(items, func(_, v string) string { return v }, func(a, b string) string { return a + b }, streams.As("lines")).To("lines-out")
	if _, err := app.Topology(); err != nil {
		t.Error(err)
	}
	app = streams.New("a", streams.RequireNames())
	left, right = app.Stream[string, string]("l"), app.Stream[string, string]("r")
	left.Join(right, func(a, b string) string { return a + b }, streams.Within(time.Minute)).To("out")
	if _, err := app.Topology(); err == nil || !strings.Contains(err.Error(), "node l.join.left: its store has no name") {
		t.Errorf("buffers of a join without a name: %v", err)
	}
}

func always(context.Context, *streams.Record[string, string]) (bool, error) { return true, nil }
