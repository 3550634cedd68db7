package topology

import (
	"fmt"
	"strings"
)

// Mermaid is the picture as a Mermaid flowchart, which many wikis and code hosts
// draw: topics are rounded, stores are cylinders, sub-topologies are boxes.
func (p Picture) Mermaid() string {
	m := &mermaid{indent: "  "}
	m.WriteString("flowchart TD\n")
	p.draw(m)
	return m.String()
}

type mermaid struct {
	strings.Builder
	indent string
}

func (m *mermaid) box(title string, index int, inside func()) {
	fmt.Fprintf(m, "  subgraph sub%d[%s]\n", index, mermaidText(title))
	m.indent = "    "
	inside()
	m.indent = "  "
	m.WriteString("  end\n")
}

func (m *mermaid) node(id, kind, name string) {
	fmt.Fprintf(m, "%s%s[%s]\n", m.indent, id, mermaidText(kind+"<br/>"+name))
}

func (m *mermaid) store(id, name string) {
	fmt.Fprintf(m, "%s%s[(%s)]\n", m.indent, id, mermaidText(name))
}

func (m *mermaid) topic(id, name string, inner bool) {
	open, end := "([", "])"
	if inner {
		open, end = "{{", "}}"
	}
	fmt.Fprintf(m, "%s%s%s%s%s\n", m.indent, id, open, mermaidText(name), end)
}

func (m *mermaid) edge(from, to string, stored bool) {
	arrow := "-->"
	if stored {
		arrow = "-.-"
	}
	fmt.Fprintf(m, "%s%s %s %s\n", m.indent, from, arrow, to)
}

// mermaidText quotes; a quote inside has a name of its own there.
func mermaidText(s string) string { return `"` + strings.ReplaceAll(s, `"`, "#quot;") + `"` }
