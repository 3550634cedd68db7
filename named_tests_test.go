package millrace

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tests in a page: `TestName/part` … in `package`, several names for one package, or one alone.
var (
	namedTests   = regexp.MustCompile("((?:`Test\\w+[^`]*`(?:, )?)+) in `([\\w/-]+)`")
	namedTest    = regexp.MustCompile("`(Test\\w+)[^`]*`")
	elsewhere    = regexp.MustCompile("`Test\\w+[^`]*`")
	pagesOfTests = []string{"exactly-once.md", "two-phase.md"}
)

// TestPagesNameTestsThatExist: a page that says which test shows something names tests of the package that it says.
func TestPagesNameTestsThatExist(t *testing.T) {
	exist := map[string]bool{}
	packages := map[string][]string{} // by test
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				exist[s.dir+" "+f.Name.Name] = true
				packages[f.Name.Name] = append(packages[f.Name.Name], s.dir)
			}
		}
	}
	for _, page := range pagesOfTests {
		b, err := os.ReadFile(filepath.Join("docs", page))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "\n", " ")
		seen := 0
		for _, m := range namedTests.FindAllStringSubmatch(text, -1) {
			for _, name := range namedTest.FindAllStringSubmatch(m[1], -1) {
				seen++
				if !exist[m[2]+" "+name[1]] {
					t.Errorf("docs/%s: there is no %s in %s%s", page, name[1], m[2], hint(packages[name[1]]))
				}
			}
		}
		for _, name := range elsewhere.FindAllString(text, -1) {
			if n := namedTest.FindStringSubmatch(name)[1]; len(packages[n]) == 0 {
				t.Errorf("docs/%s: there is no %s anywhere", page, n)
			}
		}
		if seen < 5 {
			t.Errorf("docs/%s: %d tests found, the page or this test has changed its form", page, seen)
		}
	}
}

func hint(dirs []string) string {
	if len(dirs) == 0 {
		return ""
	}
	slices.Sort(dirs)
	return fmt.Sprintf(", but in %s", strings.Join(slices.Compact(dirs), ", "))
}
