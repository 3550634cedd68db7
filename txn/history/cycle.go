package history

// checkCycles draws an edge from each writer to everyone who read it. As a reader sees
// only what is committed, and its own writes are not committed yet, these edges agree
// with the order of commits and make no circle: one of them means that information
// flowed both ways. Edges from the writer of a record to that of the next one do make
// circles, because appends of open transactions mix; that is counted.
func (c *checker) checkCycles() {
	reads, writes, both := &graph{nodes: len(c.ops)}, &graph{nodes: len(c.ops)}, &graph{nodes: len(c.ops)}
	for i := range c.ops {
		last := -1
		for _, st := range c.ops[i].steps {
			for _, r := range st.Reads {
				w := c.byKey[r.Key].values[r.Value].writer
				if w < 0 || w == i || w == last {
					continue // w == last only spares the commonest repetition
				}
				last = w
				reads.add(w, i)
				both.add(w, i)
			}
		}
	}
	for _, l := range c.logs {
		for v := 1; v < len(l.versions); v++ {
			a, b := c.writerOf(l, l.versions[v-1].value), c.writerOf(l, l.versions[v].value)
			if a >= 0 && b >= 0 && a != b {
				writes.add(a, b)
				both.add(a, b)
			}
		}
	}
	for _, k := range []struct {
		graph *graph
		class Class
	}{{reads, CircularRead}, {writes, WriteCycle}, {both, MixedCycle}} {
		k.graph.seal()
		for _, part := range k.graph.circles() {
			if c.report.Counts[k.class] >= MaxPerClass {
				c.find(k.class, Key{}, nil, "")
				continue
			}
			way := k.graph.circle(part)
			c.find(k.class, Key{}, way, "%d operations are in circles, the shortest from the first of them has %d", len(part), len(way))
		}
	}
}
