package millrace

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesShowCodeThatCompiles: every Go block of these pages stands, line for line, in a Go file of the folders named
// beside it, which the compiler and mostly a test run.
func TestPagesShowCodeThatCompiles(t *testing.T) {
	t.Parallel()
	for page, folders := range map[string][]string{
		"docs/broker.md":          {"broker"},
		"docs/streams.md":         {"streams"},
		"docs/streams/running.md": {"streams"},
		"docs/streams/serdes.md":  {"streams"},
		"docs/streams/state.md":   {"streams"},
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var code []string
		for _, folder := range folders {
			code = append(code, goFiles(t, folder)...)
		}
		blocks := strings.Split(string(text), "```go\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s shows no code", page)
		}
		for _, b := range blocks {
			block, _, closed := strings.Cut(b, "```")
			want := bare(block)
			found := false
			for _, c := range code {
				found = found || strings.Contains(c, want)
			}
			if !closed || !found {
				t.Errorf("%s: no Go file below %v has this block:\n%s", page, folders, block)
			}
		}
	}
}

// TestPagesLinkToWhatIsThere: a relative link of a page leads to a file.
func TestPagesLinkToWhatIsThere(t *testing.T) {
	t.Parallel()
	pages := []string{"README.md", "ARCHITECTURE.md"}
	for _, folder := range []string{"docs/*.md", "docs/*/*.md", "examples/*.md"} {
		found, err := filepath.Glob(folder)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`") // f[T](x) is no link
	link := regexp.MustCompile(`\]\(([^)#:"]+)(#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), l[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[1])
			}
		}
	}
}

// goFiles are the Go files below a folder, without indentation and empty lines.
func goFiles(t *testing.T, folder string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		out = append(out, bare(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var spaces = regexp.MustCompile(`[ \t]+`)

// bare is code without what gofmt decides: indentation, alignment and empty lines.
func bare(code string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(code) {
		if line = spaces.ReplaceAllString(strings.TrimSpace(line), " "); line != "" {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}
