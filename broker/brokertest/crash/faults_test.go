package crash

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// failures are the ways in which each kind of operation fails.
var failures = map[vfs.Kind][]failure{
	vfs.OpCreate:   {{name: "ENOSPC", err: syscall.ENOSPC}, {name: "EMFILE", err: syscall.EMFILE}},
	vfs.OpOpen:     {{name: "EIO", err: syscall.EIO}, {name: "EMFILE", err: syscall.EMFILE}},
	vfs.OpRename:   {{name: "EIO", err: syscall.EIO}, {name: "ENOSPC", err: syscall.ENOSPC}},
	vfs.OpRemove:   {{name: "EIO", err: syscall.EIO}},
	vfs.OpMkdir:    {{name: "ENOSPC", err: syscall.ENOSPC}},
	vfs.OpList:     {{name: "EIO", err: syscall.EIO}},
	vfs.OpStat:     {{name: "EIO", err: syscall.EIO}},
	vfs.OpSyncDir:  {{name: "EIO", err: syscall.EIO}},
	vfs.OpLock:     {{name: "EIO", err: syscall.EIO}},
	vfs.OpRead:     {{name: "EIO", err: syscall.EIO}},
	vfs.OpWrite:    {{name: "EIO", err: syscall.EIO}, {name: "ENOSPC", err: syscall.ENOSPC}, {name: "short write", err: syscall.ENOSPC, short: 7}},
	vfs.OpTruncate: {{name: "EIO", err: syscall.EIO}},
	vfs.OpSync:     {{name: "EIO", err: syscall.EIO}, {name: "ENOSPC", err: syscall.ENOSPC}},
	vfs.OpSize:     {{name: "EIO", err: syscall.EIO}},
	vfs.OpClose:    {{name: "EIO", err: syscall.EIO}},
}

// TestFaultAtEveryCallSite tells a story of everything once and counts from where the program uses the disk; then it tells the
// story again and again, and each time one operation of one place fails in one way. Whatever fails: no panic; a start that
// fails names the file; what is refused is in the log with its reason; a sync that failed is never tried again on the same
// file and believed; partitions whose files are whole go on; and after a restart on a disk that works nothing that was
// acknowledged is missing. The short form tries a share of the places.
func TestFaultAtEveryCallSite(t *testing.T) {
	share := 20
	if soak() || os.Getenv("MILLRACE_CRASH") != "" {
		share = 1
	}
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 10))
	first := newBench(t)
	first.count()
	newTrial(t, first, seed).tell()
	if err := first.b.Close(); err != nil {
		t.Fatal(err)
	}
	sites := slices.SortedFunc(maps.Keys(first.sites), func(a, b site) int { return cmp.Compare(a.String(), b.String()) })
	tried, hit := 0, 0
	for _, at := range sites {
		for _, how := range failures[at.kind] {
			if rng.IntN(share) != 0 {
				continue
			}
			nth := 1
			if n := first.sites[at]; rng.IntN(2) == 0 {
				nth += rng.IntN(n)
			}
			tried++
			name := fmt.Sprintf("%s, %s, number %d", at, how.name, nth)
			t.Run(name, func(t *testing.T) {
				m := newBench(t)
				m.failAt(at, nth, how)
				if faulty(t, m, seed) {
					hit++
				}
			})
		}
	}
	t.Logf("%d call sites, %d faults, %d of them met", len(sites), tried, hit)
	if len(sites) < 150 || hit < tried/2 {
		t.Errorf("%d sites and %d of %d faults met: the test shows little", len(sites), hit, tried)
	}
}

// faulty tells the story on a bench and judges what became of it; it tells whether the fault was met at all.
func faulty(t *testing.T, m *bench, seed uint64) bool {
	r := newTrial(t, m, seed)
	r.tell()
	path := m.failed()
	fail := func(format string, args ...any) {
		for _, s := range r.steps {
			t.Log(s)
		}
		t.Fatalf("%s failed; %s\nthe log:\n%s", path, fmt.Sprintf(format, args...), m.log)
	}
	folder := folderOf(path)
	if m.start != nil && !strings.Contains(m.start.Error(), filepath.Base(path)) && !strings.Contains(m.start.Error(), cmp.Or(folder, "data")) {
		fail("the start fails and does not name the file: %v", m.start)
	}
	if n := m.syncs[path]; n > 0 && strings.HasSuffix(path, ".log") {
		fail("the file was synced %d times after a sync had failed", n)
	}
	if path != "" && m.start == nil && r.refused && !strings.Contains(m.log.String(), cmp.Or(folder, filepath.Base(path))) {
		fail("requests were refused, and the log does not say why")
	}
	more, err := r.othersGoOn(m, folder)
	if err != nil {
		fail("others suffer: %v", err)
	}
	r.writes = append(r.writes, more...)
	r.w.close()
	if err := m.b.Close(); err != nil && m.failed() == "" {
		fail("no file has failed, but closing does: %v", err)
	}
	m.heal()
	m.disk.OnOp(nil)
	m.boot()
	if err := r.holds(m, cut{r.clock.Load(), r.clock.Load()}, nil); err != nil {
		fail("after a restart on a disk that works: %v", err)
	}
	if err := m.b.Close(); err != nil {
		fail("closing on a disk that works: %v", err)
	}
	return m.failed() != ""
}
