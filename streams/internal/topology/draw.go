package topology

import (
	"slices"
	"strconv"
)

// pen writes the parts of a drawing in one language. Ids are n0, n1… for nodes,
// s0… for stores and t0… for topics, so that they need no quotes anywhere.
type pen interface {
	box(title string, index int, inside func())
	node(id, kind, name string)
	store(id, name string)
	topic(id, name string, inner bool)
	edge(from, to string, stored bool)
}

// drawing walks a picture.
type drawing struct {
	picture Picture
	topics  []string
	nodes   map[string]string // id by name
	stores  map[string]string
}

func (p Picture) draw(w pen) {
	d := drawing{p, p.Topics(), map[string]string{}, map[string]string{}}
	for i, t := range d.topics {
		w.topic("t"+strconv.Itoa(i), t, p.inner(t))
	}
	for i, s := range p.Subs {
		w.box("sub-topology "+s.Name, i, func() {
			for _, n := range s.Nodes {
				d.place(w, n)
			}
		})
	}
	for _, g := range p.Globals {
		w.store(d.store(g.Name), g.Name)
		w.edge(d.topic(g.Topic), d.store(g.Name), false)
	}
	for _, s := range p.Subs {
		for _, n := range s.Nodes {
			d.edges(w, n)
		}
	}
}

// place draws a node and the store that it owns.
func (d *drawing) place(w pen, n PictureNode) {
	if n.Kind != "store" {
		d.nodes[n.Name] = "n" + strconv.Itoa(len(d.nodes))
		w.node(d.nodes[n.Name], n.Kind, n.Name)
	}
	if n.Store != "" {
		w.store(d.store(n.Store), n.Store)
	}
}

// edges draws what leads to a node, and from it to stores and topics.
func (d *drawing) edges(w pen, n PictureNode) {
	id := d.nodes[n.Name]
	if id == "" {
		return // a store that belongs to no node has edges from its users alone
	}
	if n.From != "" {
		w.edge(d.topic(n.From), id, false)
	}
	for _, parent := range n.Parents {
		w.edge(d.nodes[parent], id, false)
	}
	if n.Store != "" {
		w.edge(id, d.store(n.Store), true)
	}
	for _, s := range n.Reads {
		w.edge(id, d.store(s), true)
	}
	if n.To != "" {
		w.edge(id, d.topic(n.To), false)
	}
}

func (d *drawing) topic(name string) string { return "t" + strconv.Itoa(slices.Index(d.topics, name)) }

func (d *drawing) store(name string) string {
	if d.stores[name] == "" {
		d.stores[name] = "s" + strconv.Itoa(len(d.stores))
	}
	return d.stores[name]
}
