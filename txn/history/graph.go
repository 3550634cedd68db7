package history

import "slices"

// graph has operations as nodes. Edges are added first, then it is sealed.
type graph struct {
	nodes    int
	from, to []int32
	first    []int32 // of a node's edges in next
	next     []int32
}

func (g *graph) add(from, to int) {
	g.from, g.to = append(g.from, int32(from)), append(g.to, int32(to))
}

// seal sorts the edges by node and drops what is there twice.
func (g *graph) seal() {
	g.first = make([]int32, g.nodes+1)
	for _, f := range g.from {
		g.first[f+1]++
	}
	for i := range g.nodes {
		g.first[i+1] += g.first[i]
	}
	g.next = make([]int32, len(g.to))
	at := slices.Clone(g.first)
	for i, f := range g.from {
		g.next[at[f]] = g.to[i]
		at[f]++
	}
	g.from, g.to = nil, nil
}

func (g *graph) edges(n int32) []int32 { return g.next[g.first[n]:g.first[n+1]] }

// circles returns the strongly connected components of more than one node, each in
// ascending order: Tarjan's algorithm with a stack of its own, as histories are long.
func (g *graph) circles() [][]int32 {
	const unseen = -1
	depth := make([]int32, g.nodes)
	low := make([]int32, g.nodes)
	for i := range depth {
		depth[i] = unseen
	}
	edge := make([]int32, g.nodes) // how many edges of a node are done
	open := make([]bool, g.nodes)
	var out [][]int32
	var path, stack []int32
	var clock int32
	enter := func(n int32) {
		depth[n], low[n] = clock, clock
		clock++
		open[n] = true
		path, stack = append(path, n), append(stack, n)
	}
	for root := range int32(g.nodes) {
		if depth[root] != unseen {
			continue
		}
		for enter(root); len(path) > 0; {
			n := path[len(path)-1]
			if es := g.edges(n); int(edge[n]) < len(es) {
				m := es[edge[n]]
				edge[n]++
				if depth[m] == unseen {
					enter(m)
				} else if open[m] {
					low[n] = min(low[n], depth[m])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1]
				low[up] = min(low[up], low[n])
			}
			if low[n] != depth[n] {
				continue
			}
			from := len(stack) - 1
			for stack[from] != n { // from the top: the cost is the component's size
				from--
			}
			part := slices.Clone(stack[from:])
			stack = stack[:from]
			for _, m := range part {
				open[m] = false
			}
			if len(part) > 1 {
				slices.Sort(part)
				out = append(out, part)
			}
		}
	}
	return out
}

// circle returns a shortest way from a component's first node back to it.
func (g *graph) circle(part []int32) []int {
	inside := map[int32]bool{}
	for _, n := range part {
		inside[n] = true
	}
	root := part[0]
	came := map[int32]int32{}
	for queue := []int32{root}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for _, m := range g.edges(n) {
			if m == root {
				way := []int{int(root)}
				for ; n != root; n = came[n] {
					way = append(way, int(n))
				}
				slices.Reverse(way[1:])
				return way
			}
			if _, seen := came[m]; !seen && inside[m] {
				came[m] = n
				queue = append(queue, m)
			}
		}
	}
	return nil
}
