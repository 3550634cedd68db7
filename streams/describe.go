package streams

import "strings"

// Mermaid is the topology as a Mermaid flowchart. A definition with mistakes is
// drawn as a comment that has its errors.
func (a *App) Mermaid() string {
	t, err := a.Topology()
	if err != nil {
		return comment("%% ", err)
	}
	return t.Picture.Mermaid()
}

// DOT is the topology in the language of Graphviz; see Mermaid.
func (a *App) DOT() string {
	t, err := a.Topology()
	if err != nil {
		return comment("// ", err)
	}
	return t.Picture.DOT()
}

func comment(sign string, err error) string {
	return sign + strings.ReplaceAll(err.Error(), "\n", "\n"+sign) + "\n"
}

// RequireNames refuses a topology in which something that outlives the process
// has a name that follows from the path: a store with a changelog, or a
// repartition topic. Such names change when an operator is put in front, and
// what they name is then left behind. It is an option of New (KIP-1111).
func RequireNames() Opt { return Opt{"RequireNames", func(o *options) { o.requireNames = true }} }
