package topology

import "slices"

// Picture is the topology as data, for whoever draws it: this process, or a tool
// that finds it stored on the cluster (see the stored description in package
// runtime), perhaps one of another release. Fields are only ever added.
type Picture struct {
	App     string          `json:"app"`
	Subs    []PictureSub    `json:"subTopologies"`
	Globals []PictureGlobal `json:"globalTables,omitempty"`
}

// PictureSub is one sub-topology, its nodes in order of definition: parents
// stand before their children.
type PictureSub struct {
	Name  string        `json:"name"`
	Nodes []PictureNode `json:"nodes"`
}

// PictureNode is one node. A node without parents is a source, or a store that
// belongs to no node.
type PictureNode struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Detail   string   `json:"detail,omitempty"`
	Parents  []string `json:"parents,omitempty"`
	From     string   `json:"from,omitempty"`  // the topic that a source reads
	To       string   `json:"to,omitempty"`    // the topic that a sink writes
	Inner    bool     `json:"inner,omitempty"` // that topic is the application's own
	Store    string   `json:"store,omitempty"` // that the node owns
	Shape    string   `json:"shape,omitempty"` // of the store's rows
	InMemory bool     `json:"inMemory,omitempty"`
	// Changelog of the store; Logged is false where it is the source topic.
	Changelog string   `json:"changelog,omitempty"`
	Logged    bool     `json:"logged,omitempty"`
	Reads     []string `json:"reads,omitempty"` // stores of others, and global tables
}

// PictureGlobal is one global table.
type PictureGlobal struct {
	Name   string `json:"name"`
	Topic  string `json:"topic"`
	Detail string `json:"detail,omitempty"`
}

// Topics lists the topics of the picture, each once, in order of appearance.
func (p Picture) Topics() []string {
	var topics []string
	add := func(topic string) {
		if topic != "" && !slices.Contains(topics, topic) {
			topics = append(topics, topic)
		}
	}
	for _, s := range p.Subs {
		for _, n := range s.Nodes {
			add(n.From)
			add(n.To)
		}
	}
	for _, g := range p.Globals {
		add(g.Topic)
	}
	return topics
}

// inner reports a topic of the application's own.
func (p Picture) inner(topic string) bool {
	for _, s := range p.Subs {
		for _, n := range s.Nodes {
			if n.Inner && (n.From == topic || n.To == topic) {
				return true
			}
		}
	}
	return false
}
