// Package stagetest runs the examples in tests.
package stagetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/examples/internal/stage"
)

// Wants runs an example on a broker of its own and compares what it prints, line by
// line. It also reads its --help and its topology.
func Wants(t *testing.T, p stage.Play, want string) {
	t.Helper()
	wants(t, p, want, func([]string) {})
}

// WantsInAnyOrder is Wants for results of several topics or tasks, between which
// there is no order.
func WantsInAnyOrder(t *testing.T, p stage.Play, want string) {
	t.Helper()
	wants(t, p, want, slices.Sort[[]string])
}

func wants(t *testing.T, p stage.Play, want string, order func([]string)) {
	t.Helper()
	var help strings.Builder
	if err := p.Run(t.Context(), []string{"--help"}, &help); err == nil || !strings.Contains(help.String(), p.About) || !strings.Contains(help.String(), "-brokers") {
		t.Errorf("--help: %v, %s", err, help.String())
	}
	var topology strings.Builder
	if err := p.Run(t.Context(), []string{"--describe"}, &topology); err != nil || !strings.Contains(topology.String(), p.Name) {
		t.Errorf("--describe: %v, %s", err, topology.String())
	}
	var out strings.Builder
	if err := p.Run(t.Context(), []string{"--state", t.TempDir()}, &out); err != nil {
		t.Fatalf("%v, after\n%s", err, out.String())
	}
	got, lines := strings.Split(strings.TrimSpace(out.String()), "\n"), strings.Split(strings.TrimSpace(want), "\n")
	order(got)
	order(lines)
	if !slices.Equal(got, lines) {
		t.Errorf("it prints\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}
