package runtime

import (
	"fmt"
	"time"
)

// countInterval is how long the partition count of a topic of somebody's is believed.
const countInterval = 30 * time.Second

// count is how many partitions a topic had when it was last asked for.
type count struct {
	n  int32
	at time.Time
}

// partitions is how many partitions a topic has, for nodes that choose one. Those
// of the application's own topics do not change; others are asked for again now and
// then, while the records wait.
func (w *worker) partitions(topic string) (int32, error) {
	if w.plan.internal(topic) {
		return int32(len(w.plan.topics[topic].Partitions)), nil
	}
	if c := w.counts[topic]; time.Since(c.at) < countInterval {
		return c.n, nil
	}
	found, err := w.cluster.Topics(w.ctx, topic)
	if err != nil {
		return 0, err
	}
	n := int32(len(found[topic].Partitions))
	if n == 0 {
		return 0, fmt.Errorf("streams: topic %q does not exist", topic)
	}
	if w.counts == nil {
		w.counts = map[string]count{}
	}
	w.counts[topic] = count{n, time.Now()}
	return n, nil
}
