package api

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var update = flag.Bool("update", false, "write the generated parts of docs/protocol.md")

const (
	protocolPage      = "../../../docs/protocol.md"
	hostileDeviations = "../../testdata/hostile-deviations.txt"
)

// The tables of docs/protocol.md are what the code serves. After a change:
//
//	go test ./broker/internal/api -run ProtocolPage -update
func TestProtocolPage(t *testing.T) {
	page, err := os.ReadFile(protocolPage)
	if err != nil {
		t.Fatal(err)
	}
	deviations, err := os.ReadFile(hostileDeviations)
	if err != nil {
		t.Fatal(err)
	}
	want := string(page)
	for name, table := range map[string]string{
		"requests": requestTable(), "features": featureTable(), "odd requests": oddRequestTable(t, string(deviations)),
	} {
		want = replaceBlock(t, want, name, table)
	}
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatal("docs/protocol.md does not say what the code serves; run this test with -update")
	}
	if err := os.WriteFile(protocolPage, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceBlock replaces what stands between the two comments that name a block.
func replaceBlock(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- generated: "+name+" -->\n", "<!-- end: "+name+" -->"
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("docs/protocol.md has no block %q", name)
	}
	return head + begin + text + end + tail
}

func requestTable() string {
	var b strings.Builder
	b.WriteString("| key | request | versions | flexible from |\n|--:|---|---|--:|\n")
	for _, r := range routes {
		first := "–"
		if flexible[r.key] >= 0 && flexible[r.key] <= r.max {
			first = fmt.Sprint(flexible[r.key])
		}
		fmt.Fprintf(&b, "| %d | %s | %d–%d | %s |\n", r.key, kmsg.NameForKey(r.key), r.min, r.max, first)
	}
	return b.String()
}

func featureTable() string {
	var b strings.Builder
	b.WriteString("| feature | levels |\n|---|---|\n")
	for _, f := range supportedFeatures {
		fmt.Fprintf(&b, "| `%s` | %d–%d |\n", f.name, f.min, f.max)
	}
	return b.String()
}

// oddRequestTable shows the list that the test of odd requests allows, cases with
// the same answer and reason in one row.
func oddRequestTable(t *testing.T, text string) string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) != 4 {
			t.Fatalf("deviation %q has %d fields, want 4", line, len(f))
		}
		if n := len(rows); n > 0 && rows[n-1][2] == f[2] && rows[n-1][3] == f[3] {
			rows[n-1][1] += "; " + f[1]
			continue
		}
		rows = append(rows, f)
	}
	var b strings.Builder
	b.WriteString("| request | answer here | why |\n|---|---|---|\n")
	for _, f := range rows {
		answer := f[2]
		if strings.Contains(answer, "=") {
			answer = "`" + answer + "`"
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %s |\n", f[0], f[1], answer, f[3])
	}
	return b.String()
}
