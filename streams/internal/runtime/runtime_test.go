package runtime_test

import (
	"testing"
	"time"
)

func TestRunsAndStopsInOrder(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	j.label()
	j.send(2000)
	o := j.options(dir)
	o.Workers = 1 // a second one that comes late would be given tasks that have committed
	r := j.start(o)
	j.await(r)
	j.finish(r)
	j.check()
	j.checkStores(dir)
	if got := j.resumed.Load(); got != 0 {
		t.Errorf("stream time %d before anything was committed", got)
	}
	// A second run goes on where the first stopped, stream time included.
	last := int64(1_000_000_000_000 + j.sent - 1)
	j.send(500)
	r = j.start(o)
	j.await(r)
	j.finish(r)
	j.check()
	j.checkStores(dir)
	if got := j.resumed.Load(); got != last {
		t.Errorf("tasks went on at stream time %d, want %d", got, last)
	}
}
