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

// LookForTopics is how often a running application looks for new topics that match a
// pattern; see App.StreamMatching. The default is 10 s.
func LookForTopics(every time.Duration) RunOpt {
	return func(o *runtime.Options) { o.LookForTopics = every }
}

// InputBytes is how many bytes of input each worker may hold in memory, over all of its
// partitions, fetched ahead and being read; batches count as they are in the log. It is
// exceeded by a batch of each broker at most, and by one batch of each input without
// which a task could not go on. The default is 64 MiB.
func InputBytes(n int) RunOpt { return func(o *runtime.Options) { o.InputBytes = n } }

// UncommittedBytes is how much the changes of the stores of each worker may take in
// memory before it commits early. The default is 64 MiB. What one record, or one timer,
// changes and sends is committed together, however much it is.
func UncommittedBytes(n int) RunOpt { return func(o *runtime.Options) { o.UncommittedBytes = n } }
