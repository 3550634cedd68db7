package page

import (
	"fmt"
	"html"
	"strings"

	"github.com/millrace/millrace/streams/internal/topology"
)

// drawSVG draws a topology. Colours are variables of the page, so that it follows
// light and dark; texts with data-rate, data-lag and data-store are filled in by
// the page's script.
func drawSVG(p topology.Picture) string {
	d := lay(p)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" aria-label="topology of %s">`,
		d.w, d.h, d.w, d.h, html.EscapeString(p.App))
	b.WriteString(`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" class="tip"/></marker></defs>`)
	for _, e := range d.edges {
		fmt.Fprintf(&b, `<path class="edge" d="%s" marker-end="url(#tip)"/>`, d.path(e))
	}
	for _, e := range d.links {
		from, to := d.boxes[e.from], d.boxes[e.to]
		if from.x > to.x {
			from, to = to, from // from the right side of the left one to the left side of the other
		}
		fmt.Fprintf(&b, `<path class="link" d="M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f"/>`,
			from.x+from.w/2, from.y, (from.x+from.w/2+to.x-to.w/2)/2, from.y, (from.x+from.w/2+to.x-to.w/2)/2, to.y, to.x-to.w/2, to.y)
	}
	for _, x := range d.boxes {
		if x.kind != "" {
			x.draw(&b)
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// path is an edge as a curve that leaves and enters its boxes upright.
func (d *drawing) path(e edge) string {
	from, to := d.boxes[e.from], d.boxes[e.to]
	x, y := from.x, from.y+from.h/2
	end := to.y - to.h/2 - 2
	if to.layer <= from.layer { // back up, on the right side of both
		x, y = from.x+from.w/2, from.y
		return fmt.Sprintf("M%.1f %.1f C%.1f %.1f %.1f %.1f %.1f %.1f", x, y, x+60, y, to.x+to.w/2+60, to.y, to.x+to.w/2+2, to.y)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%.1f %.1f", x, y)
	curve := func(toX, toY float64) {
		fmt.Fprintf(&b, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, (y+toY)/2, toX, (y+toY)/2, toX, toY)
		x, y = toX, toY
	}
	for _, v := range e.via {
		curve(d.boxes[v].x, d.boxes[v].y)
	}
	curve(to.x, end)
	return b.String()
}

func (x *box) draw(b *strings.Builder) {
	left, top := x.x-x.w/2, x.y-x.h/2
	class := x.kind
	if x.inner {
		class += " inner"
	}
	colour := ""
	if x.sub >= 0 {
		colour = fmt.Sprintf(" sub%d", x.sub%8)
	}
	radius := 6
	if x.kind == "topic" {
		radius = 22
	}
	fmt.Fprintf(b, `<g class="%s%s" transform="translate(%.1f %.1f)"><title>%s</title>`, class, colour, left, top, html.EscapeString(strings.TrimSpace(x.label+" "+x.name+" "+x.detail)))
	fmt.Fprintf(b, `<rect width="%.0f" height="%.0f" rx="%d"/>`, x.w, x.h, radius)
	indent := 14
	if x.kind == "topic" {
		indent = 20
	}
	if x.sub >= 0 {
		fmt.Fprintf(b, `<rect class="stripe" width="5" height="%.0f" rx="2"/>`, x.h)
	}
	fmt.Fprintf(b, `<text class="label" x="%d" y="17">%s</text>`, indent, html.EscapeString(x.label))
	switch x.kind {
	case "node":
		fmt.Fprintf(b, `<text class="rate" x="%.0f" y="17" data-rate="%s"></text>`, x.w-10, html.EscapeString(x.name))
	case "topic":
		fmt.Fprintf(b, `<text class="rate" x="%.0f" y="17" data-lag="%s"></text>`, x.w-18, html.EscapeString(x.name))
	}
	fmt.Fprintf(b, `<text class="name" x="%d" y="35">%s</text>`, indent, html.EscapeString(shorten(x.name, 28)))
	if x.store != "" {
		fmt.Fprintf(b, `<path class="disk" d="M%d 47v7a5 2 0 0 0 10 0v-7a5 2 0 0 0 -10 0a5 2 0 0 0 10 0"/>`, indent)
		fmt.Fprintf(b, `<text class="label" x="%d" y="56" data-store="%s">%s</text>`, indent+16, html.EscapeString(x.store), html.EscapeString(shorten(x.store, 26)))
	}
	b.WriteString("</g>")
}

// shorten keeps the end of a long name, which tells it from its neighbours.
func shorten(name string, most int) string {
	if r := []rune(name); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return name
}
