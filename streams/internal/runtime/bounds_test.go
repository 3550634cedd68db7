package runtime_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/txn/session"
)

// What is uncommitted is bounded by bytes, not by the commit interval: changes of
// stores and, at most once, the output that is held back.
func TestUncommittedBytesAreBounded(t *testing.T) {
	t.Parallel()
	const events = 20_000
	for _, mode := range []session.Mode{session.ExactlyOnce, session.AtMostOnce} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, time.Minute)
			var rs []*kgo.Record
			for i := range events {
				rs = append(rs, &kgo.Record{Topic: j.events, Partition: int32(i % partitions), Value: []byte(strconv.Itoa(i))})
			}
			j.produce(rs)
			o := j.options(t.TempDir())
			o.Workers, o.Guarantee, o.UncommittedBytes = 1, mode, 30<<10
			o.CommitInterval, o.TransactionTimeout = 5*time.Minute, 10*time.Minute // never
			var most, last int64
			o.OnProgress = func(p runtime.Progress) { most, last = max(most, p.Processed-last), p.Processed }
			r, err := runtime.Start(j.ctx, j.distinct(false), j.cluster, o)
			j.must(err)
			j.must(r.Drain(j.ctx))
			// A row takes about 100 bytes; the tasks are looked at after 500 records each.
			if limit := int64(30<<10/60 + partitions*500); most > limit {
				t.Errorf("%d records went into one commit, want at most %d", most, limit)
			}
			if n := j.results(); n != events {
				t.Errorf("%d results of %d events", n, events)
			}
		})
	}
}

func TestInputBytesAreChecked(t *testing.T) {
	t.Parallel()
	err := runtime.Run(t.Context(), (&job{app: "x", out: "o"}).distinct(false), tcp{"x"}, runtime.Options{InputBytes: -1})
	if err == nil || errors.Is(err, session.ErrAborted) {
		t.Errorf("%v", err)
	}
}
