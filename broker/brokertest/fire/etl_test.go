package fire

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	result = regexp.MustCompile(`^ +--- PASS: TestTxnEtl/`)
	skip   = regexp.MustCompile(`^ +--- SKIP: TestTxnEtl/`)
)

// TestT45FranzsTransactions runs franz-go's own TestTxnEtl against the real binary: a topic is copied along chains of
// consumer groups, in transactions, with members that come and go, under several balancers. Aborted data leaked through
// it in another broker, and an assignment was cut short under load.
func TestT45FranzsTransactions(t *testing.T) {
	count, records, which := "1", "1000", "TestTxnEtl/^range$"
	if n := os.Getenv("MILLRACE_FIRE"); n != "" {
		count, records, which = n, "20000", "TestTxnEtl"
	}
	binary := os.Getenv("MILLRACE_KGO_TEST")
	if binary == "" {
		binary = filepath.Join(buildDir, "kgo.test")
		if out, err := exec.Command("go", "test", "-c", "-o", binary, "github.com/twmb/franz-go/pkg/kgo").CombinedOutput(); err != nil {
			t.Fatalf("franz-go's tests: %v\n%s", err, out)
		}
	}
	s := startServer(t)
	cmd := exec.Command(binary, "-test.run", which, "-test.count", count, "-test.v", "-test.timeout", "55m")
	cmd.Env = append(os.Environ(), "KGO_SEEDS="+s.addr, "KGO_TEST_RECORDS="+records, "KGO_TEST_RF=1")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, lastLines(string(said), 20_000))
	}
	passed, skipped := 0, 0
	for line := range strings.Lines(string(said)) {
		switch {
		case result.MatchString(line):
			passed++
		case skip.MatchString(line):
			skipped++
		}
	}
	t.Logf("%d chains passed, %d were skipped", passed, skipped)
	if passed == 0 {
		t.Errorf("no chain ran:\n%s", lastLines(string(said), 2000))
	}
}
