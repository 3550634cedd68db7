package operator

import "github.com/millrace/millrace/streams/internal/task"

func (j *StreamJoin[K, L, R, V]) core(b *Builder) (*streamJoin[K, V], error) {
	return Join(b, j.Out, func() (*streamJoin[K, V], error) {
		c := &streamJoin[K, V]{site: b.Site(j.Node, task.Process, j.Handler), clock: b.Clock(j.Node), seq: b.Clock(j.Node + " count"),
			reach: j.Reach, lateTo: j.LateTo, key: j.Key, nils: NilOf[V]()}
		var err error
		if c.next, err = j.Out.Build(b); err != nil {
			return nil, err
		}
		if j.Waiting != "" {
			if c.wait, err = newWaiting(b, j.Waiting); err != nil {
				return nil, err
			}
		}
		left, err := newJoinBuffer(b, c.site, j.LeftRows, j.Left, j.Reach.segmentMs())
		if err != nil {
			return nil, err
		}
		right, err := newJoinBuffer(b, c.site, j.RightRows, j.Right, j.Reach.segmentMs())
		if err != nil {
			return nil, err
		}
		fn, swapped := j.New(), swap(j.New())
		c.sides[leftSide] = &streamSide[K, L, R, V]{join: c, side: leftSide, own: left, other: right, fn: fn,
			backMs: j.Reach.BeforeMs, forthMs: j.Reach.AfterMs, lone: j.Sides.LeftAlone}
		c.sides[rightSide] = &streamSide[K, R, L, V]{join: c, side: rightSide, own: right, other: left, fn: swapped,
			backMs: j.Reach.AfterMs, forthMs: j.Reach.BeforeMs, lone: j.Sides.RightAlone}
		return c, nil
	})
}

// BuildLeft makes the node for the left stream.
func (j *StreamJoin[K, L, R, V]) BuildLeft(b *Builder) (Sink[K, L], error) {
	c, err := j.core(b)
	if err != nil {
		return nil, err
	}
	return c.sides[leftSide].(Sink[K, L]), nil
}

// BuildRight makes the node for the right stream.
func (j *StreamJoin[K, L, R, V]) BuildRight(b *Builder) (Sink[K, R], error) {
	c, err := j.core(b)
	if err != nil {
		return nil, err
	}
	return c.sides[rightSide].(Sink[K, R]), nil
}
