package runtime_test

import (
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/internal/runtime"
)

// BenchmarkCount counts events per word, joined with a table, on our own broker
// in memory and with stores on disk: one operation is one event, from the
// re-keyed topic to the committed result.
func BenchmarkCount(b *testing.B) {
	j := newJob(b, 5*time.Minute)
	j.label()
	for left := max(b.N, 10_000); left > 0; left -= 20_000 {
		j.sendKeyed(min(left, 20_000))
	}
	o := j.options(b.TempDir())
	o.CommitInterval, o.Store.FlushCommits = 100*time.Millisecond, 0
	var mu sync.Mutex
	done := make(chan struct{})
	seen := map[int]int64{}
	o.OnProgress = func(p runtime.Progress) {
		mu.Lock()
		defer mu.Unlock()
		seen[p.Worker] = p.Processed
		if seen[0]+seen[1] == int64(j.sent+words) {
			close(done)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	r := j.startCount(o)
	<-done
	b.StopTimer()
	b.ReportMetric(float64(j.sent)/b.Elapsed().Seconds(), "records/s")
	j.finish(r)
}
