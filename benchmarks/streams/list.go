package main

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/benchmarks/figures"
)

// allWork is every piece of work, in this order: the jobs and what else is measured of them, or the Nexmark queries.
func allWork(nexmark bool) []work {
	if nexmark {
		return nexmarkWork()
	}
	return slices.Concat(jobWork(), latencyWork(), restartWork(), keysWork())
}

// names lists what -only knows.
func names(all []work) string {
	var out []string
	for _, w := range all {
		if !slices.Contains(out, w.name) {
			out = append(out, w.name)
		}
	}
	return strings.Join(out, ",")
}

// figureNamed finds a figure among those of all work.
func figureNamed(all []work, name string) (figures.Figure, bool) {
	for _, w := range all {
		for _, f := range w.figures {
			if f.Name == name {
				return f, true
			}
		}
	}
	return figures.Figure{}, false
}
