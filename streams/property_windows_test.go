package streams_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/streamstest"
	"github.com/millrace/millrace/streams/window"
)

// slidingOracle counts, for one key, the windows of every record by plain loops: the
// one that ends at it and the one that starts 1 ms after it, if others are in it.
func slidingOracle(times []int64, reach int64) map[int64]int64 {
	inside := func(from int64) (n int64) {
		for _, t := range times {
			if t >= from && t <= from+reach {
				n++
			}
		}
		return n
	}
	counts := map[int64]int64{}
	for _, t := range times {
		counts[max(0, t-reach)] = inside(max(0, t-reach))
		if n := inside(t + 1); n > 0 {
			counts[t+1] = n
		}
	}
	return counts
}

// TestSlidingWindowsAgainstOracle: whatever the order of arrival and wherever the
// crashes, the last update of each window, and its only final result, is what the
// records give.
func TestSlidingWindowsAgainstOracle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		reach := 1 + rnd.Int64N(30)
		app := streams.New("sliding")
		w := app.Stream[string, string]("in").GroupByKey().Windowed(streams.Sliding(ms(reach), streams.Grace(ms(500)))).Count(streams.As("n"))
		w.ToStream().To("updates")
		w.OnClose().ToStream().To("finals")
		d := streamstest.New(t, app, streamstest.Partitions(2))
		in := d.In[string, string]("in")
		times := map[string][]int64{}
		for range 5 + rnd.IntN(40) {
			k, at := string(rune('a'+rnd.IntN(3))), rnd.Int64N(120)
			times[k] = append(times[k], at)
			in.At(time.UnixMilli(at), k, "v")
			if rnd.IntN(10) == 0 {
				d.Crash()
			}
		}
		for i := range 8 { // closes everything in both partitions
			in.At(time.UnixMilli(5000), fmt.Sprintf("z%d", i), "end")
		}
		keys := window.Serde(serde.String, ms(reach+1))
		for _, topic := range []string{"updates", "finals"} {
			got := map[string]int64{}
			for _, r := range d.Out[streams.Windowed[string], int64](topic).Keys(keys).Records() {
				id := fmt.Sprint(r.Key.Key, r.Key.Window.StartMs())
				if _, again := got[id]; again && topic == "finals" {
					t.Errorf("seed %d: final result of %s came twice", seed, id)
				}
				if r.Key.Key[0] != 'z' {
					got[id] = r.Value
				}
			}
			want := map[string]int64{}
			for k, ts := range times {
				for start, n := range slidingOracle(ts, reach) {
					want[fmt.Sprint(k, start)] = n
				}
			}
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d, reach %d, %s: %v\n got %v\nwant %v", seed, reach, topic, times, got, want)
			}
		}
	}
}

// TestCalendarDays: the day on which clocks change has 25 hours, in the results
// and on the wire.
func TestCalendarDays(t *testing.T) {
	t.Parallel()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Skip("no time zones here")
	}
	app := streams.New("days")
	w := streams.Daily(rome, streams.Grace(time.Hour))
	app.Stream[string, string]("in").GroupByKey().Windowed(w).Count(streams.As("n")).OnClose().
		Map(func(w streams.Window, k string, n int64) (string, string) {
			return k, fmt.Sprint(w.Start.In(rome).Format("02 15:04"), " ", w.End.Sub(w.Start), " ", n)
		}).To("out")
	d := streamstest.New(t, app)
	in := d.In[string, string]("in")
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 10, day, hour, minute, 0, 0, rome) }
	in.At(at(25, 0, 0), "a", "first of the 25th")
	in.At(at(25, 23, 59), "a", "last of the 25th")
	in.At(at(26, 0, 59), "a", "the 26th, the 25th is open")
	in.At(at(25, 12, 0), "a", "late, in grace")
	d.Crash()
	in.At(at(26, 1, 0), "a", "closes the 25th")
	in.At(at(25, 13, 0), "a", "too late")
	in.At(at(27, 1, 0), "a", "closes the 26th")
	var got []string
	for _, r := range d.Out[string, string]("out").Records() {
		got = append(got, r.Value)
	}
	if want := []string{"25 00:00 25h0m0s 3", "26 00:00 24h0m0s 2"}; !slices.Equal(got, want) || d.Dropped("n", "late") != 1 {
		t.Errorf("got %q, want %q; late %d\n%s", got, want, d.Dropped("n", "late"), app.Describe())
	}
}

func TestUnlimitedWindowTakesWhatIsNotBeforeIt(t *testing.T) {
	t.Parallel()
	app := streams.New("unlimited")
	app.Stream[string, string]("in").GroupByKey().Windowed(streams.Unlimited(time.UnixMilli(10))).Count(streams.As("n")).ToStream().To("out")
	d := streamstest.New(t, app)
	in := d.In[string, string]("in")
	for _, at := range []int64{9, 10, 1 << 40, 11} {
		in.At(time.UnixMilli(at), "a", "v")
		d.Crash()
	}
	out := d.Out[[]byte, int64]("out").Records()
	if len(out) != 3 || out[2].Value != 3 || d.Dropped("n", "late") != 0 {
		t.Errorf("got %v", out)
	}
	bad := streams.New("unlimited")
	bad.Stream[string, string]("in").GroupByKey().Windowed(streams.Unlimited(time.UnixMilli(10))).Count(streams.Retention(time.Hour)).OnClose().ToStream().To("out")
	if _, err := bad.Topology(); err == nil {
		t.Error("final results of a window that never ends")
	}
}
