package topology

import (
	"fmt"
	"strings"
)

// DOT is the picture in the language of Graphviz, in the same form as Mermaid.
func (p Picture) DOT() string {
	d := &dot{indent: "  "}
	fmt.Fprintf(d, "digraph %s {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", fontsize=11];\n", dotText(p.App))
	p.draw(d)
	d.WriteString("}\n")
	return d.String()
}

type dot struct {
	strings.Builder
	indent string
}

func (d *dot) box(title string, index int, inside func()) {
	fmt.Fprintf(d, "  subgraph cluster_%d {\n    label=%s;\n", index, dotText(title))
	d.indent = "    "
	inside()
	d.indent = "  "
	d.WriteString("  }\n")
}

func (d *dot) node(id, kind, name string) {
	fmt.Fprintf(d, "%s%s [label=%s];\n", d.indent, id, dotText(kind+"\n"+name))
}

func (d *dot) store(id, name string) {
	fmt.Fprintf(d, "%s%s [label=%s, shape=cylinder];\n", d.indent, id, dotText(name))
}

func (d *dot) topic(id, name string, inner bool) {
	style := "rounded"
	if inner {
		style = "rounded,dashed"
	}
	fmt.Fprintf(d, "%s%s [label=%s, style=%q];\n", d.indent, id, dotText(name), style)
}

func (d *dot) edge(from, to string, stored bool) {
	style := ""
	if stored {
		style = " [style=dotted, dir=none]"
	}
	fmt.Fprintf(d, "  %s -> %s%s;\n", from, to, style)
}

// dotText quotes as Graphviz wants it: quotes and backslashes escaped, a new
// line as \n.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
