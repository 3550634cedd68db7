package streams_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// Each policy for times before 1970, for a record's own time and for one from its
// contents, with a crash in between.
func TestInvalidTimes(t *testing.T) {
	t.Parallel()
	byValue := streams.TimestampBy(func(r *streams.Record[string, string], _ time.Time) time.Time { return r.Time.Add(-time.Second) })
	for _, c := range []struct {
		name    string
		opts    []streams.Opt
		want    string // value@time of the output
		fails   bool   // the record before 1970 that comes second
		dropped int64
	}{
		{"own", nil, "a@5000 c@6000", true, 0},
		{"own, fails", []streams.Opt{streams.InvalidTime(streams.TimeFails)}, "a@5000", true, 0},
		{"own, skips", []streams.Opt{streams.InvalidTime(streams.TimeSkips)}, "a@5000 c@6000", false, 1},
		{"own, partition", []streams.Opt{streams.InvalidTime(streams.TimeOfPartition)}, "a@5000 b@5000 c@6000", false, 0},
		{"contents", []streams.Opt{byValue}, "a@4000 c@5000", false, 1},
		{"contents, fails", []streams.Opt{byValue, streams.InvalidTime(streams.TimeFails)}, "a@4000", true, 0},
		{"contents, skips", []streams.Opt{byValue, streams.InvalidTime(streams.TimeSkips)}, "a@4000 c@5000", false, 1},
		{"contents, partition", []streams.Opt{byValue, streams.InvalidTime(streams.TimeOfPartition)}, "a@4000 b@4000 c@5000", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			app := streams.New("times")
			app.Stream[string, string]("in", c.opts...).To("out")
			d := streamstest.New(t, app)
			in := d.In[string, string]("in")
			in.At(time.UnixMilli(5000), "k", "a")
			d.Crash()
			err := in.Try(time.UnixMilli(-1), "k", "b")
			var f *streams.Failure
			if c.fails != errors.As(err, &f) || c.fails && (f.Phase != streams.PhaseDecode || f.Offset != 1) {
				t.Fatalf("the record before 1970: %v", err)
			}
			if c.fails {
				return
			}
			in.At(time.UnixMilli(6000), "k", "c")
			var got []string
			for _, r := range d.Out[string, string]("out").Records() {
				got = append(got, fmt.Sprintf("%s@%d", r.Value, r.Time.UnixMilli()))
			}
			if fmt.Sprint(got) != "["+c.want+"]" {
				t.Errorf("out %v, want %s", got, c.want)
			}
			if n := d.Dropped("in", "no time"); n != c.dropped {
				t.Errorf("%d dropped, want %d", n, c.dropped)
			}
		})
	}
	// Before a partition has a time there is none to take.
	app := streams.New("first")
	app.Stream[string, string]("in", streams.InvalidTime(streams.TimeOfPartition)).To("out")
	d := streamstest.New(t, app)
	if err := d.In[string, string]("in").Try(time.UnixMilli(-1), "k", "b"); err == nil {
		t.Error("a first record without a time passes")
	}
	if len(d.Written()) > 0 {
		t.Error("and comes out")
	}
}
