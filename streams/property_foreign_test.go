package streams_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

// TestForeignJoinIsTheJoin changes rows of both sides at random, with commits,
// and crashes, between any two hops, so that answers are overtaken: in the end the
// result is what a database would say, in the topic and in the kept rows.
func TestForeignJoinIsTheJoin(t *testing.T) {
	t.Parallel()
	for seed := range uint64(80) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		app := streams.New("fk")
		l, r := app.Table[string, *string]("l"), app.Table[string, *string]("r")
		left := seed%2 == 1
		var joined streams.Table[string, string]
		if left {
			fk := func(_ string, v *string) streams.Maybe[string] {
				return streams.Maybe[string]{V: (*v)[:1], OK: (*v)[0] != '-'}
			}
			joined = l.LeftJoinFK(r, fk, func(v *string, x streams.Maybe[*string]) string { return *v + "+" + or(x.V, "~") }, streams.As("j"))
		} else {
			fk := func(_ string, v *string) *string {
				if k := (*v)[:1]; k != "-" {
					return &k
				}
				return nil
			}
			joined = l.JoinFK(app.Table[*string, *string]("r"), fk, func(v, x *string) string { return *v + "+" + *x }, streams.As("j"))
		}
		joined.To("out")
		joined.Filter(func(string) bool { return true }).To("kept") // wants old values: the results are kept
		d := streamstest.New(t, app, streamstest.TopicPartitions("l", 3), streamstest.TopicPartitions("r", 2), streamstest.ManualCommit())
		lin, rin := d.In[string, *string]("l"), d.In[string, *string]("r")
		lrows, rrows := map[string]string{}, map[string]string{}
		for i := range 60 {
			at, k := time.UnixMilli(rnd.Int64N(1000)), fmt.Sprint(rnd.IntN(6))
			rows, in, v := lrows, lin, string("-abc"[rnd.IntN(4)])+fmt.Sprint("/", i)
			if rnd.IntN(3) == 0 {
				rows, in, k, v = rrows, rin, string("abc"[rnd.IntN(3)]), fmt.Sprint("R", i)
			}
			if rnd.IntN(4) == 0 {
				delete(rows, k)
				in.At(at, k, nil)
			} else {
				rows[k] = v
				in.At(at, k, &v)
			}
			switch rnd.IntN(5) {
			case 0:
				d.Process()
			case 1, 2:
				d.Commit()
			case 3:
				if rnd.IntN(3) == 0 {
					d.Crash()
				}
			}
		}
		d.Settle()
		d.Crash()
		want := map[string]string{}
		for k, v := range lrows {
			x, ok := rrows[v[:1]]
			switch {
			case ok:
				want[k] = v + "+" + x
			case left:
				want[k] = v + "+~"
			}
		}
		for _, topic := range []string{"out", "kept"} {
			got := map[string]string{}
			for _, r := range d.Out[string, *string](topic).Records() {
				if r.Value == nil {
					delete(got, r.Key)
				} else {
					got[r.Key] = *r.Value
				}
			}
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d, %s:\n got %v\nwant %v", seed, topic, got, want)
			}
		}
		got := map[string]string{}
		for _, r := range d.Rows[string, string]("j.result") {
			got[r.Key] = r.Value
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d, rows:\n got %v\nwant %v", seed, got, want)
		}
	}
}
