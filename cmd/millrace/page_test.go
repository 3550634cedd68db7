package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What differs from run to run in the outputs of docs/cli.md.
var varying = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`id [\w-]{22}`), "id ID"},
	{regexp.MustCompile(`"timestamp":\d+`), `"timestamp":0`},
	{regexp.MustCompile(`producer \d+`), "producer 0"},
	{regexp.MustCompile(`began \S+Z`), "began TIME"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
}

func steady(s string) string {
	for _, v := range varying {
		s = v.what.ReplaceAllString(s, v.as)
	}
	return s
}

// Every command line of docs/cli.md prints what the page says.
func TestCommandLinePage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell:", err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := server(t, t.TempDir())
	commands := 0
	for i, block := range strings.Split(string(page), "```console\n")[1:] {
		block, _, closed := strings.Cut(block, "```")
		if !closed {
			t.Fatalf("console block %d is not closed", i)
		}
		for step := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
			line, want, _ := strings.Cut(step, "\n")
			want = strings.TrimSuffix(want, "\n")
			cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"), brokersEnv+"="+s.addr)
			cmd.WaitDelay = time.Second
			watch := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() /* it may have ended */ })
			out, err := cmd.CombinedOutput()
			watch.Stop()
			// An error is part of the page where the output is one.
			if err != nil && !strings.HasPrefix(want, "millrace: ") {
				t.Errorf("$ %s: %v", line, err)
			}
			if got := strings.TrimSuffix(string(out), "\n"); steady(got) != steady(want) {
				t.Errorf("$ %s\nprints\n%s\nthe page says\n%s", line, got, want)
			}
			commands++
		}
	}
	if commands < 10 {
		t.Errorf("the page has %d command lines", commands)
	}
}
