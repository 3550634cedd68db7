package commitlog

import "sync"

// graves are the segments whose files wait under deletedSuffix.
type graves struct {
	mu   sync.Mutex
	list []grave
}

type grave struct {
	s     *segment
	dueMs int64
}

func (g *graves) add(one grave) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, one)
}

// due takes off the list what may be deleted.
func (g *graves) due(nowMs int64) (out []*segment) {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := g.list[:0]
	for _, one := range g.list {
		if one.dueMs <= nowMs && one.s.refs.Load() == 0 {
			out = append(out, one.s)
		} else {
			kept = append(kept, one)
		}
	}
	clear(g.list[len(kept):])
	g.list = kept
	return out
}
