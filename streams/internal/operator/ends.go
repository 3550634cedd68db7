package operator

import (
	"fmt"

	"github.com/millrace/millrace/streams/window"
)

// ends is what a windowed aggregation has once per task, however many streams
// it takes: the highest time of them all, how far final results and removal have
// got, and the ways out.
type ends[K, A any] struct {
	clock   *Clock // stream time over all streams
	emitted *Clock // windows below it have had their final result; nil if nobody wants them
	expired int64  // windows below it have been removed, by this task
	updates Sink[window.Windowed[K], A]
	closed  Sink[window.Windowed[K], A]
}

func newEnds[K, A any](b *Builder, node string, updates, closed *Outlet[window.Windowed[K], A]) (*ends[K, A], error) {
	return Join(b, updates, func() (e *ends[K, A], err error) {
		e = &ends[K, A]{clock: b.Clock(node)}
		if closed.Used() {
			e.emitted = b.Clock(node + " closed") // no node's name has a space
		}
		if e.updates, err = updates.Build(b); err != nil {
			return nil, err
		}
		e.closed, err = closed.Build(b)
		return e, err
	})
}

// clockOf is the stream time by which records of a stream are late: of several
// streams that are aggregated together each has its own, part tells them apart.
func (e *ends[K, A]) clockOf(b *Builder, node, part string) *Clock {
	if part == "" {
		return e.clock
	}
	return b.Clock(node + " " + part)
}

// isOut reports whether the final result of a window at that place is out.
func (e *ends[K, A]) isOut(at int64) bool { return e.emitted != nil && at < e.emitted.Ms() }

// keyOf decodes the key of a row.
func keyOf[K any](site *Site, codec *Codec[K], store string, key []byte) (K, error) {
	site.enter()
	k, err := codec.Serde.Decode(key)
	site.leave()
	if err != nil {
		err = fmt.Errorf("store %s: a key does not decode as the type of this release: %w", store, err)
	}
	return k, err
}
