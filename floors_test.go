package millrace

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The house rules that no compiler checks. Each test walks the sources once more from the syntax alone, so that it
// needs no build and cannot be fooled by build tags.

const modulePath = "github.com/millrace/millrace"

// floors gives each top-level folder its floor; folders of the same floor are siblings and never import each other.
// cmd, examples and benchmarks are the exception on top: they are programs and nobody imports them.
var floors = map[string]int{
	"core": 0, "txn": 1, "broker": 2, "streams": 2, "connectors": 2,
	"cmd": 3, "examples": 3, "benchmarks": 3,
}

// pure lists the packages that are state machines or plain computation: no goroutine, channel, clock, socket, file,
// global randomness or log inside. Whoever drives them owns all of these.
var pure = []string{
	"core/record", "core/partition",
	"txn/coordinator", "txn/producer", "txn/isolation", "txn/history",
	"broker/internal/group", "broker/internal/compact",
	"streams/internal/task", "streams/internal/operator", "streams/internal/topology", "streams/window",
}

// grabBags are names that say nothing about what a package or file provides.
var grabBags = []string{"util", "utils", "common", "misc", "helper", "helpers", "types", "shared", "base", "lib"}

type source struct {
	dir, name string // slash separated, relative to the root
	file      *ast.File
	fset      *token.FileSet
	test      bool
}

func (s source) at(p token.Pos) string {
	pos := s.fset.Position(p)
	return fmt.Sprintf("%s:%d", path.Join(s.dir, s.name), pos.Line)
}

// sources parses every Go file of the module outside testdata.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); p != "." && (n == "testdata" || strings.HasPrefix(n, ".") || strings.HasPrefix(n, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{
			dir: filepath.ToSlash(filepath.Dir(p)), name: filepath.Base(p),
			file: f, fset: fset, test: strings.HasSuffix(p, "_test.go"),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("only %d Go files found: the walk is broken", len(out))
	}
	return out
}

func room(dir string) string { r, _, _ := strings.Cut(dir, "/"); return r }

// isTestRoom says whether a package exists for tests only (broker/brokertest, streams/streamstest, …). Such a package
// may be imported from tests of any floor, and may itself look upward.
func isTestRoom(dir string) bool {
	return strings.HasSuffix(dir, "test") || strings.Contains(dir, "test/")
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir == "." || s.test || isTestRoom(s.dir) {
			continue
		}
		from, ok := floors[room(s.dir)]
		if !ok {
			t.Errorf("%s: folder %q has no floor", path.Join(s.dir, s.name), room(s.dir))
			continue
		}
		for _, im := range s.file.Imports {
			target, ours := strings.CutPrefix(strings.Trim(im.Path.Value, `"`), modulePath+"/")
			if !ours || room(target) == room(s.dir) {
				continue
			}
			to, ok := floors[room(target)]
			switch {
			case !ok:
				t.Errorf("%s imports %s, which has no floor", s.at(im.Pos()), target)
			case to >= from:
				t.Errorf("%s: %s (floor %d) imports %s (floor %d): imports point down only", s.at(im.Pos()), s.dir, from, target, to)
			case isTestRoom(target):
				t.Errorf("%s: production code imports the test room %s", s.at(im.Pos()), target)
			}
		}
	}
}

// impureImports may not appear in a pure package at all.
var impureImports = []string{
	"os", "net", "log", "log/slog", "math/rand", "os/exec", "os/signal", "syscall", "io/ioutil", "net/http", "runtime/debug",
	modulePath + "/core/vfs", modulePath + "/core/memnet", modulePath + "/core/clock",
}

// impureCalls are functions of otherwise harmless packages that read a clock, arm a timer or draw from global randomness.
var impureCalls = map[string][]string{
	"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"math/rand/v2": {"Int", "IntN", "Int32", "Int32N", "Int64", "Int64N", "Uint32", "Uint64", "N", "Float64", "Float32", "Perm", "Shuffle"},
	"crypto/rand":  {"Read", "Int", "Text", "Reader"},
}

func TestPurePackagesArePure(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || !slices.Contains(pure, s.dir) {
			continue
		}
		seen[s.dir] = true
		calls := map[string][]string{} // local import name -> forbidden functions
		for _, im := range s.file.Imports {
			p := strings.Trim(im.Path.Value, `"`)
			if slices.Contains(impureImports, p) {
				t.Errorf("%s: pure package imports %s", s.at(im.Pos()), p)
			}
			if fns, ok := impureCalls[p]; ok {
				name := path.Base(p)
				if p == "math/rand/v2" {
					name = "rand"
				}
				if im.Name != nil {
					name = im.Name.Name
				}
				calls[name] = fns
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: goroutine in a pure package", s.at(n.Pos()))
			case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s: channel in a pure package", s.at(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(calls[x.Name], n.Sel.Name) {
					t.Errorf("%s: %s.%s in a pure package", s.at(n.Pos()), x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
	for _, p := range pure {
		if !seen[p] {
			t.Errorf("%s is declared pure but holds no code", p)
		}
	}
}

func TestNoGrabBagNames(t *testing.T) {
	for _, s := range sources(t) {
		for _, part := range append(strings.Split(s.dir, "/"), strings.TrimSuffix(strings.TrimSuffix(s.name, ".go"), "_test")) {
			if slices.Contains(grabBags, part) {
				t.Errorf("%s: %q says nothing about what it provides", path.Join(s.dir, s.name), part)
			}
		}
	}
}

// TestFilesHaveAReasonableSize: past 600 lines a file states its reason in its header.
func TestFilesHaveAReasonableSize(t *testing.T) {
	for _, s := range sources(t) {
		lines := s.fset.File(s.file.Pos()).LineCount()
		if lines <= 600 {
			continue
		}
		reason := false
		for _, c := range s.file.Comments {
			reason = reason || strings.Contains(c.Text(), "Size:")
		}
		if !reason {
			t.Errorf("%s has %d lines (limit 600; a longer one gives its reason in a comment that starts with \"Size:\")", path.Join(s.dir, s.name), lines)
		}
	}
}

// TestNoFileCycles: inside a package, files form layers too. File a depends on file b when it uses a function, type,
// variable or constant that b declares at package level; methods and fields count where their type does.
func TestNoFileCycles(t *testing.T) {
	packages := map[string][]source{}
	for _, s := range sources(t) {
		if !s.test {
			packages[s.dir] = append(packages[s.dir], s)
		}
	}
	for dir, files := range packages {
		home := map[string]string{} // package-level name -> file
		for _, s := range files {
			for _, name := range packageLevelNames(s.file) {
				home[name] = s.name
			}
		}
		edges := map[string]map[string]string{} // file -> file -> a name that makes the edge
		for _, s := range files {
			edges[s.name] = map[string]string{}
			for name := range packageLevelUses(s.file) {
				if to := home[name]; to != "" && to != s.name {
					edges[s.name][to] = name
				}
			}
		}
		if cycle := findCycle(edges); cycle != nil {
			var b strings.Builder
			for i, from := range cycle {
				to := cycle[(i+1)%len(cycle)]
				fmt.Fprintf(&b, "\n\t%s uses %s of %s", from, edges[from][to], to)
			}
			t.Errorf("%s: files depend on each other in a circle:%s", dir, b.String())
		}
	}
}

func packageLevelNames(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name != "init" {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, sp := range d.Specs {
				switch sp := sp.(type) {
				case *ast.TypeSpec:
					names = append(names, sp.Name.Name)
				case *ast.ValueSpec:
					for _, n := range sp.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "_" })
}

// packageLevelUses returns the names that a file leaves to the package scope. Keys of composite literals are field
// names and receivers of methods belong to the method's own layer (a type may have methods in several files); neither
// makes a dependency of files.
func packageLevelUses(f *ast.File) map[string]bool {
	skip := map[*ast.Ident]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			for _, el := range n.Elts {
				if kv, ok := el.(*ast.KeyValueExpr); ok {
					if id, ok := kv.Key.(*ast.Ident); ok {
						skip[id] = true
					}
				}
			}
		case *ast.FuncDecl:
			if n.Recv != nil {
				ast.Inspect(n.Recv, func(r ast.Node) bool {
					if id, ok := r.(*ast.Ident); ok {
						skip[id] = true
					}
					return true
				})
			}
		}
		return true
	})
	uses := map[string]bool{}
	for _, id := range f.Unresolved {
		if !skip[id] {
			uses[id.Name] = true
		}
	}
	return uses
}

// findCycle returns one circle of the graph in order, or nil. It visits in sorted order, so the answer is stable.
func findCycle(edges map[string]map[string]string) []string {
	const visiting, done = 1, 2
	state := map[string]int{}
	var stack, cycle []string
	var visit func(string) bool
	visit = func(n string) bool {
		state[n] = visiting
		stack = append(stack, n)
		var next []string
		for to := range edges[n] {
			next = append(next, to)
		}
		slices.Sort(next)
		for _, to := range next {
			if state[to] == visiting {
				cycle = slices.Clone(stack[slices.Index(stack, to):])
				return true
			}
			if state[to] == 0 && visit(to) {
				return true
			}
		}
		state[n] = done
		stack = stack[:len(stack)-1]
		return false
	}
	var nodes []string
	for n := range edges {
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	for _, n := range nodes {
		if state[n] == 0 && visit(n) {
			return cycle
		}
	}
	return nil
}
