package page

import (
	"html/template"
	"net/http"
	"strings"
)

// html is the page itself: the drawing is part of it, its figures come from
// /figures.json.
func (p page) html(w http.ResponseWriter, r *http.Request) {
	picture, ok := p.w.Picture()
	if !ok {
		w.Header().Set("Refresh", "1")
		http.Error(w, "the application has not started", http.StatusServiceUnavailable)
		return
	}
	var b strings.Builder
	err := pageTemplate.Execute(&b, map[string]any{
		"App": picture.App, "CSS": template.CSS(pageCSS), "JS": template.JS(pageJS), "SVG": template.HTML(drawSVG(picture)),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Nothing is loaded from anywhere, and nothing but the page's own script runs.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:")
	write(w, "text/html; charset=utf-8", b.String())
}
