package page

import (
	_ "embed"
	"html/template"
	"strings"

	"github.com/millrace/millrace/streams/internal/topology"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// standalone is a drawing with the colours of the page in it.
func standalone(p topology.Picture) string {
	return strings.Replace(drawSVG(p), "<defs>", "<style>"+pageCSS+"</style><defs>", 1)
}
