package page

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/streams/internal/topology"
)

// box is something that is drawn: a topic, a node, a global table, a store that
// belongs to no node, or, without a kind, the place where an edge passes a layer.
type box struct {
	kind   string // "topic", "node", "table", "store" or ""
	name   string
	label  string // the kind of the node, or what else it is
	detail string
	store  string // that the node owns
	inner  bool   // a topic of the application's own
	sub    int    // sub-topology, -1 for none
	layer  int
	x, y   float64 // of the middle
	w, h   float64
}

// edge leads from one box to another, through the boxes that stand for it in the
// layers between.
type edge struct {
	from, to int
	via      []int
	stored   bool // a look-up in a store, drawn apart from the flow of records
}

// drawing is a topology in layers, from the sources at the top down.
type drawing struct {
	boxes []box
	edges []edge
	links []edge // look-ups
	w, h  float64
}

// Sizes in pixels.
const (
	boxWidth  = 210
	boxHeight = 46
	rowHeight = 18 // of a line more
	gapX      = 26
	gapY      = 40
	margin    = 16
)

// lay makes the drawing of a picture.
func lay(p topology.Picture) *drawing {
	d := &drawing{}
	d.collect(p)
	d.rank()
	d.split()
	d.order()
	d.place()
	return d
}

// collect makes boxes and edges.
func (d *drawing) collect(p topology.Picture) {
	topics, nodes, stores := map[string]int{}, map[string]int{}, map[string]int{}
	add := func(b box) int {
		b.w, b.h = boxWidth, boxHeight
		if b.store != "" {
			b.h += rowHeight
		}
		d.boxes = append(d.boxes, b)
		return len(d.boxes) - 1
	}
	topic := func(name string, inner bool) int {
		if at, ok := topics[name]; ok {
			return at
		}
		label := "topic"
		if inner {
			label = "internal topic"
		}
		topics[name] = add(box{kind: "topic", name: name, label: label, inner: inner, sub: -1})
		return topics[name]
	}
	for i, s := range p.Subs {
		for _, n := range s.Nodes {
			b := box{kind: "node", name: n.Name, label: n.Kind, detail: n.Detail, store: n.Store, sub: i}
			if n.Kind == "store" {
				b.kind, b.store = "store", ""
			}
			nodes[n.Name] = add(b)
			if n.Store != "" {
				stores[n.Store] = nodes[n.Name]
			}
		}
	}
	for _, g := range p.Globals {
		stores[g.Name] = add(box{kind: "table", name: g.Name, label: "global table", detail: g.Detail, sub: -1})
		d.edges = append(d.edges, edge{from: topic(g.Topic, false), to: stores[g.Name]})
	}
	for _, s := range p.Subs {
		for _, n := range s.Nodes {
			at := nodes[n.Name]
			if n.From != "" {
				d.edges = append(d.edges, edge{from: topic(n.From, n.Inner), to: at})
			}
			for _, parent := range n.Parents {
				d.edges = append(d.edges, edge{from: nodes[parent], to: at})
			}
			if n.To != "" {
				d.edges = append(d.edges, edge{from: at, to: topic(n.To, n.Inner)})
			}
			for _, r := range n.Reads {
				if to, ok := stores[r]; ok && to != at {
					d.links = append(d.links, edge{from: at, to: to, stored: true})
				}
			}
		}
	}
}

// rank gives each box its layer: below all that leads to it. Edges that close a
// circle, as foreign-key joins have one, are turned round for that.
func (d *drawing) rank() {
	out := make([][]int, len(d.boxes))
	for i, e := range d.edges {
		out[e.from] = append(out[e.from], i)
	}
	const onTheWay, done = 1, 2
	state := make([]int, len(d.boxes))
	back := make([]bool, len(d.edges))
	var sorted []int
	var visit func(int)
	visit = func(b int) {
		state[b] = onTheWay
		for _, e := range out[b] {
			switch to := d.edges[e].to; state[to] {
			case 0:
				visit(to)
			case onTheWay:
				back[e] = true
			}
		}
		state[b] = done
		sorted = append(sorted, b)
	}
	for b := range d.boxes {
		if state[b] == 0 {
			visit(b)
		}
	}
	for _, b := range slices.Backward(sorted) {
		for _, e := range out[b] {
			if to := d.edges[e].to; !back[e] {
				d.boxes[to].layer = max(d.boxes[to].layer, d.boxes[b].layer+1)
			}
		}
	}
	// A box that nothing leads to stands right above what it leads to.
	into := make([]int, len(d.boxes))
	for i, e := range d.edges {
		if !back[i] {
			into[e.to]++
		}
	}
	for b := range d.boxes {
		if into[b] > 0 || len(out[b]) == 0 {
			continue
		}
		lowest := 1 << 30
		for _, e := range out[b] {
			lowest = min(lowest, d.boxes[d.edges[e].to].layer)
		}
		d.boxes[b].layer = max(0, lowest-1)
	}
	for _, l := range d.links { // a store of its own stands beside who uses it first
		if d.boxes[l.to].kind == "store" && d.boxes[l.to].layer == 0 {
			d.boxes[l.to].layer = d.boxes[l.from].layer
		}
	}
}

// split gives each long edge a place in the layers that it passes.
func (d *drawing) split() {
	for i := range d.edges {
		e := &d.edges[i]
		from, to := d.boxes[e.from].layer, d.boxes[e.to].layer
		step := 1
		if to < from {
			step = -1
		}
		if from == to {
			continue
		}
		for l := from + step; l != to; l += step {
			d.boxes = append(d.boxes, box{layer: l, sub: -1, w: 14, h: 0})
			e.via = append(e.via, len(d.boxes)-1)
		}
	}
}

// layers lists the boxes of each layer in their order from the left.
func (d *drawing) layers() [][]int {
	var layers [][]int
	for i, b := range d.boxes {
		for len(layers) <= b.layer {
			layers = append(layers, nil)
		}
		layers[b.layer] = append(layers[b.layer], i)
	}
	for _, l := range layers {
		slices.SortStableFunc(l, func(a, b int) int { return cmp.Compare(d.boxes[a].x, d.boxes[b].x) })
	}
	return layers
}

// neighbours lists what each box is connected with in the layers next to it.
func (d *drawing) neighbours() (up, down [][]int) {
	up, down = make([][]int, len(d.boxes)), make([][]int, len(d.boxes))
	for _, e := range d.edges {
		chain := append(append([]int{e.from}, e.via...), e.to)
		for i := range len(chain) - 1 {
			a, b := chain[i], chain[i+1]
			if d.boxes[a].layer > d.boxes[b].layer {
				a, b = b, a
			}
			down[a], up[b] = append(down[a], b), append(up[b], a)
		}
	}
	return up, down
}

// order sorts the boxes of the layers so that few edges cross: by the mean of the
// places of their neighbours, up and down a few times.
func (d *drawing) order() {
	up, down := d.neighbours()
	for i := range d.boxes {
		d.boxes[i].x = float64(i)
	}
	for range 8 {
		for _, side := range [][][]int{up, down} {
			for _, layer := range d.layers() {
				for _, b := range layer {
					if mean, ok := d.mean(side[b]); ok {
						d.boxes[b].x = mean
					}
				}
				slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(d.boxes[a].x, d.boxes[b].x) })
				for at, b := range layer {
					d.boxes[b].x = float64(at)
				}
			}
		}
	}
}

func (d *drawing) mean(of []int) (x float64, ok bool) {
	for _, b := range of {
		x += d.boxes[b].x
	}
	return x / float64(max(1, len(of))), len(of) > 0
}

// place turns the order into pixels: boxes move towards the mean of their
// neighbours as far as those beside them let them.
func (d *drawing) place() {
	layers := d.layers()
	up, down := d.neighbours()
	for _, layer := range layers {
		x := 0.0
		for _, b := range layer {
			d.boxes[b].x = x + d.boxes[b].w/2
			x += d.boxes[b].w + gapX
		}
	}
	for round := range 12 {
		side := up
		if round%2 == 1 {
			side = down
		}
		for _, layer := range layers {
			d.settle(layer, side)
		}
	}
	left, y := 0.0, float64(margin)
	for _, b := range d.boxes {
		left = min(left, b.x-b.w/2)
	}
	for _, layer := range layers {
		tall := 0.0
		for _, b := range layer {
			tall = max(tall, d.boxes[b].h)
		}
		for _, b := range layer {
			d.boxes[b].x += margin - left
			d.boxes[b].y = y + tall/2
			d.w = max(d.w, d.boxes[b].x+d.boxes[b].w/2+margin)
		}
		y += tall + gapY
	}
	d.h = y - gapY + margin
}

// settle moves the boxes of a layer to where they want to be, keeps their order,
// and pushes those apart that are too close.
func (d *drawing) settle(layer []int, side [][]int) {
	for _, b := range layer {
		if mean, ok := d.mean(side[b]); ok {
			d.boxes[b].x = mean
		}
	}
	shift := 0.0
	for i := 1; i < len(layer); i++ {
		a, b := &d.boxes[layer[i-1]], &d.boxes[layer[i]]
		if least := a.x + a.w/2 + gapX + b.w/2; b.x < least {
			shift += least - b.x
			b.x = least
		}
	}
	for _, b := range layer { // half of the push to each side
		d.boxes[b].x -= shift / float64(2*max(1, len(layer)))
	}
}
