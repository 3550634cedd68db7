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
	r := j.start(j.options(dir))
	j.await(r)
	j.finish(r)
	j.check()
	j.checkStores(dir)
	// A second run goes on where the first stopped.
	j.send(500)
	r = j.start(j.options(dir))
	j.await(r)
	j.finish(r)
	j.check()
	j.checkStores(dir)
}
