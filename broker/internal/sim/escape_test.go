package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// workers are the files that keep goroutines of their own, and none under a driver.
var workers = []string{
	"flush/flusher.go", "flush/carry_redo.go", "coord/workers.go", "api/waker.go", "cleaner/cleaner.go", "replicas/parallel.go", "metadata/store.go",
}

// TestNothingEscapes reads the sources of everything that runs in the simulation: a goroutine, the machine's clock or its chance would
// make a seed mean nothing. Package listener is not in it, whose place the network of the simulation takes.
func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	files := 0
	for _, dir := range []string{"api", "cleaner", "commitlog", "compact", "coord", "flush", "group", "metadata", "partition", "replicas", "scrub"} {
		err := filepath.WalkDir("../"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			escapes(t, path)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}

func escapes(t *testing.T, path string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	worker := slices.ContainsFunc(workers, func(w string) bool { return strings.HasSuffix(filepath.ToSlash(path), "/"+w) })
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !worker {
				t.Errorf("%v: a goroutine: use clock.Go", set.Position(n.Pos()))
			}
		case *ast.SelectorExpr:
			on, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			what := on.Name + "." + n.Sel.Name
			switch what {
			case "time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick",
				"rand.Int32", "rand.Int64", "rand.IntN", "rand.Uint64", "rand.Read", "uuid.New", "uuid.NewV4":
				t.Errorf("%v: %s: use the clock, or the source of ids, that the broker was given", set.Position(n.Pos()), what)
			}
			if n.Sel.Name == "Go" && on.Name != "clock" && on.Name != "driver" && on.Name != "d" && !worker {
				t.Errorf("%v: %s: a goroutine: use clock.Go", set.Position(n.Pos()), what)
			}
		}
		return true
	})
}
