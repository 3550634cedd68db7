package mutations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../../../../"

// seeds is within how many each mutation must be caught.
const seeds = 1500

// source is a file with the edits of a mutation.
func (m Mutation) source(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range m.Edits {
		text, ok := out[e.File]
		if !ok {
			raw, err := os.ReadFile(root + e.File)
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			t.Fatalf("%s: %s has this text %d times, must be once; the source has moved on, and the table must follow:\n%s", m.Name, e.File, n, e.Old)
		}
		out[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return out
}

// TestTable holds the table against the source.
func TestTable(t *testing.T) {
	t.Parallel()
	if len(All) < 25 {
		t.Errorf("only %d mutations", len(All))
	}
	var names []string
	for _, m := range All {
		if len(m.Edits) == 0 || m.What == "" || slices.Contains(names, m.Name) {
			t.Errorf("%q is no entry", m.Name)
		}
		names = append(names, m.Name)
		m.source(t)
	}
}

// TestCaught builds the simulation with each mutation and runs it until it fails. MILLRACE_MUTATION is a pattern for names.
func TestCaught(t *testing.T) {
	pattern := os.Getenv("MILLRACE_MUTATION")
	if pattern == "" {
		t.Skip("a long form: make sim-mutations")
	}
	names, err := regexp.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range All {
		if !names.MatchString(m.Name) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			began := time.Now()
			binary := build(t, m)
			built := time.Since(began)
			how, caught := run(t, binary)
			if !caught {
				t.Fatalf("%s: not caught within %d seeds", m.What, seeds)
			}
			t.Logf("built in %v; %s", built.Round(time.Second), how)
		})
	}
}

// build makes the simulation with a mutation.
func build(t *testing.T, m Mutation) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range m.source(t) {
		real, err := filepath.Abs(root + file)
		if err != nil {
			t.Fatal(err)
		}
		changed := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[real] = changed
	}
	raw, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "sim")
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "./broker/internal/sim/cmd")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s does not compile: %v\n%s", m.Name, err, out)
	}
	return binary
}

// run runs seeds until one fails, and says how it failed.
func run(t *testing.T, binary string) (how string, caught bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "-seed", "1", "-count", fmt.Sprint(seeds)).CombinedOutput()
	if ctx.Err() != nil {
		return "it hangs", true
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "seed ") || strings.HasPrefix(line, "fatal error") {
			how = strings.TrimSpace(line)
			break
		}
	}
	return how, err != nil
}
