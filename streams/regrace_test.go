package streams_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/state"
)

// TestGraceMayChangeBetweenReleases: a new release finds the store and the
// progress of the old one. No final result may be lost or repeated, and rows
// past the new retention go.
func TestGraceMayChangeBetweenReleases(t *testing.T) {
	for _, c := range []struct {
		before, after time.Duration
		want          string
	}{
		// Windows 0 to 40 have a record each at their start; 35 is stream time
		// at the change, 15 a record that comes late to a window that is out.
		{0, 0, "0 10 20 | 30 40 50"},
		{30 * time.Millisecond, 0, "| 0 10 20 30 40 50"},
		{0, 30 * time.Millisecond, "0 10 20 | 30"},
	} {
		store := state.NewOverlay(state.NewMemory(), state.OverlayOptions{})
		var got []string
		release := func(grace time.Duration, progress string, times ...int64) string {
			app := streams.New("g")
			app.Stream[string, string]("in").GroupByKey().
				Windowed(streams.Tumbling(10*time.Millisecond, streams.Grace(grace))).Count(streams.As("w"), streams.Retention(time.Second)).OnClose().
				Map(func(w streams.Window, k string, n int64) (string, string) { return k, fmt.Sprint(w.StartMs()) }).To("out")
			top, err := app.Topology()
			if err != nil {
				t.Fatal(err)
			}
			tk, err := top.Subs[0].New(task.Env{
				Progress: []string{progress},
				Emit:     func(o *task.Out) error { got = append(got, string(o.Value)); return nil },
				Store:    func(string) (state.Store, error) { return store, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, ts := range times {
				if err := tk.Process(&task.Record{Topic: "in", TimeMs: ts, Key: []byte("k"), Value: []byte("v")}); err != nil {
					t.Fatal(err)
				}
			}
			return tk.Progress()
		}
		progress := release(c.before, "", 0, 10, 20, 30, 35)
		got = append(got, "|")
		release(c.after, progress, 40, 15, 50, 75)
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("grace %v, then %v: windows %q closed, want %q", c.before, c.after, s, c.want)
		}
	}
}
