package streams

import (
	"time"

	"github.com/millrace/millrace/streams/internal/runtime"
)

// TaskIdle is how long a task that has records of one input waits for the producers of
// another that is empty, so that the two merge by time even when one is written later.
// The default, 0, waits for what is there: until a fetch that was sent after the first
// record arrived has found nothing, which is enough for topics that were filled before.
// A task that has waited goes on without that input until it has records again. A
// negative d does not wait at all: the order among inputs is then that of arrival.
func TaskIdle(d time.Duration) RunOpt { return func(o *runtime.Options) { o.TaskIdle = d } }
