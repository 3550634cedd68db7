package history

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func transcript(t *testing.T, path string) (events []Event, also []Class) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if c, found := strings.CutPrefix(strings.TrimSpace(line), "# also: "); found {
			also = append(also, Class(c))
		}
	}
	if events, err = Parse(bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	return events, also
}

func check(t *testing.T, events []Event) *Report {
	t.Helper()
	r, err := Check(events)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestClasses: for each class there is a small history that has it, and one like it
// that has not. A forbidden class is found alone, or with those that the history names.
func TestClasses(t *testing.T) {
	for _, class := range Classes() {
		t.Run(string(class), func(t *testing.T) {
			events, also := transcript(t, filepath.Join("testdata", string(class)+".bad.txt"))
			r := check(t, events)
			if r.Counts[class] == 0 {
				t.Fatalf("not found:\n%s", text(t, r))
			}
			for _, c := range r.Errors() {
				if c != class && !slices.Contains(also, c) {
					t.Errorf("%s is found too:\n%s", c, text(t, r))
				}
			}
			for _, c := range also {
				if r.Counts[c] == 0 {
					t.Errorf("%s is not found:\n%s", c, text(t, r))
				}
			}
			if r.Valid() != (len(r.Errors()) == 0) || class.Allowed() && !r.Valid() {
				t.Errorf("valid %v with %v", r.Valid(), r.Errors())
			}
			if out := text(t, r); !strings.Contains(out, string(class)) || !strings.Contains(out, class.Meaning()) {
				t.Errorf("the report does not name it:\n%s", out)
			}
			events, _ = transcript(t, filepath.Join("testdata", string(class)+".good.txt"))
			if r := check(t, events); !r.Valid() || r.Counts[class] != 0 {
				t.Errorf("found where there is none:\n%s", text(t, r))
			}
		})
	}
}

// TestTranscriptsAreOfClasses: no file lies there unread.
func TestTranscriptsAreOfClasses(t *testing.T) {
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) != 2*len(Classes()) {
		t.Fatalf("%d files for %d classes: %v", len(files), len(Classes()), err)
	}
}
