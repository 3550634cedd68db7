package streams_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/state"
)

// BenchmarkKeys counts 10,000 keys in a store, with a commit after every 10,000
// records as the runtime does it: changelog records out of the overlay, then
// the overlay accepted.
func BenchmarkKeys(b *testing.B) {
	for _, c := range []struct {
		name  string
		build func(*streams.App)
	}{
		{"count", func(app *streams.App) {
			app.Stream[int64, int64]("in").GroupByKey().Count(streams.As("n"))
		}},
		{"count per minute", func(app *streams.App) {
			app.Stream[int64, int64]("in").GroupByKey().Windowed(streams.Tumbling(time.Minute)).Count(streams.As("n"))
		}},
		{"count per minute, final results", func(app *streams.App) {
			app.Stream[int64, int64]("in").GroupByKey().Windowed(streams.Tumbling(time.Minute)).Count(streams.As("n")).OnClose().ToStream().To("out")
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			app := streams.New("bench")
			c.build(app)
			top, err := app.Topology()
			if err != nil {
				b.Fatal(err)
			}
			store := state.NewOverlay(state.NewMemory(), state.OverlayOptions{})
			logged := 0
			tk, err := top.Subs[0].New(task.Env{
				Emit:  func(*task.Out) error { return nil },
				Store: func(string) (state.Store, error) { return store, nil },
			})
			if err != nil {
				b.Fatal(err)
			}
			r := &task.Record{Topic: "in", Key: make([]byte, 8), Value: make([]byte, 8)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				binary.BigEndian.PutUint64(r.Key, uint64(i*7919%10_000))
				r.TimeMs = int64(i) // a thousand records a second
				if err := tk.Process(r); err != nil {
					b.Fatal(err)
				}
				if i%10_000 != 9_999 {
					continue
				}
				if err := store.Log(func(_, _ []byte) error { logged++; return nil }); err != nil {
					b.Fatal(err)
				}
				if err := store.Commit(state.Position{TopicID: [16]byte{1}, Next: int64(logged)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
