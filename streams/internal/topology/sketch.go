package topology

import "slices"

// picture draws what Plan has found.
func (g *Graph) picture(t *Topology, parts [][]*Node) Picture {
	p := Picture{App: g.appID}
	for i, nodes := range parts {
		sub := PictureSub{Name: t.Subs[i].Name}
		for _, n := range nodes {
			pn := PictureNode{Name: n.Name, Kind: n.Kind, Detail: n.Detail, Inner: n.Inner, Reads: slices.Concat(n.Reads, n.Globals)}
			for _, parent := range n.Parents {
				pn.Parents = append(pn.Parents, parent.Name)
			}
			if n.Root != nil {
				pn.From = n.Topic
			} else {
				pn.To = n.Topic
			}
			if n.Store != nil {
				pn.Store, pn.Shape, pn.InMemory = n.Store.Name, n.Shape, n.Store.InMemory
				pn.Changelog, pn.Logged = n.Store.Changelog, n.Store.Changelog != "" && n.Store.FromSource == nil
			}
			sub.Nodes = append(sub.Nodes, pn)
		}
		p.Subs = append(p.Subs, sub)
	}
	for _, global := range t.Globals {
		p.Globals = append(p.Globals, PictureGlobal{global.Name, global.Topic, global.Detail})
	}
	return p
}
