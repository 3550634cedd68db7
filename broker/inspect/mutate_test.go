package inspect

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// everyFile lists the files of a folder and the folders in it.
func everyFile(t *testing.T, fsys vfs.FS, dir string) []string {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := fsys.Stat(path)
		switch {
		case err != nil:
			t.Fatal(err)
		case info.Dir:
			out = append(out, everyFile(t, fsys, path)...)
		default:
			out = append(out, path)
		}
	}
	return out
}

func flip(t *testing.T, fsys vfs.FS, path string, at int64, bit int) {
	t.Helper()
	f, err := fsys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// harmless are the flips that change nothing: what meta.properties says of the cluster is nobody else's knowledge, and the lock has
// no content.
func harmless(path string) bool {
	name := filepath.Base(path)
	return name == identityFile || name == ".lock"
}

// Every flipped bit in any file of our own folder is found, and named with its partition and file. Every byte of the small files is
// tried, some 85 places in each of the others.
func TestFlippedBitIsFound(t *testing.T) {
	fsys := ownFolder(t, 2)
	tried := 0
	for _, path := range everyFile(t, fsys, ownDir) {
		if harmless(path) {
			continue
		}
		data, err := vfs.ReadFile(fsys, path)
		if err != nil {
			t.Fatal(err)
		}
		step := 1
		if len(data) > 600 {
			step = len(data)/85 | 1
		}
		if testing.Short() {
			step *= 7
		}
		for at := 0; at < len(data); at += step {
			bit := (at*5 + 3) % 8
			flip(t, fsys, path, int64(at), bit)
			found := namedIn(verifyAt(t, fsys, about(path)), path)
			flip(t, fsys, path, int64(at), bit)
			if !found {
				t.Errorf("%s: bit %d of byte %d of %d (%#02x) flipped, and nothing is said", path, bit, at, len(data), data[at])
			}
			tried++
		}
	}
	t.Logf("%d flips", tried)
	if left := faults(verifyAt(t, fsys, ownDir)); len(left) > 0 {
		t.Fatalf("all flips undone, and still: %v", left)
	}
}

// about is the folder to verify for a change of a file: its partition's, or all when it is about more.
func about(path string) string {
	dir := filepath.Dir(path)
	if dir == ownDir || strings.HasPrefix(filepath.Base(dir), metadataTopic) {
		return ownDir
	}
	return dir
}

// namedIn tells whether a fault names the partition that a file belongs to, or the file of the data folder.
func namedIn(fs []Finding, path string) bool {
	folder := filepath.Base(filepath.Dir(path))
	return slices.ContainsFunc(faults(fs), func(f Finding) bool {
		return f.Partition == folder || f.Partition == "" && f.File == filepath.Base(path) ||
			strings.HasPrefix(folder, metadataTopic) // a topic whose id changed is missed in many places
	})
}

// Every file that is dropped is missed, but for a snapshot inside of a segment, which only saves time.
func TestDroppedFileIsMissed(t *testing.T) {
	fsys := ownFolder(t, 2)
	for _, path := range everyFile(t, fsys, ownDir) {
		if filepath.Base(path) == ".lock" || insideSnapshot(t, fsys, path) {
			continue
		}
		c := fsys.Clone()
		if err := c.Remove(path); err != nil {
			t.Fatal(err)
		}
		if len(faults(verifyAt(t, c, ownDir))) == 0 && !empty(t, fsys, path) {
			t.Errorf("%s is gone, and nothing is said", path)
		}
	}
}

// insideSnapshot tells of a snapshot that stands at no segment's beginning.
func insideSnapshot(t *testing.T, fsys vfs.FS, path string) bool {
	t.Helper()
	if !strings.HasSuffix(path, snapshotSuffix) {
		return false
	}
	_, err := fsys.Stat(strings.TrimSuffix(path, snapshotSuffix) + logSuffix)
	offset, _, _ := parseName(filepath.Base(path))
	return err != nil || offset == 0
}

// empty tells of a log in which nothing was ever written, and of its index files.
func empty(t *testing.T, fsys vfs.FS, path string) bool {
	t.Helper()
	info, err := fsys.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size == 0
}

// Two files of a kind that changed places are found.
func TestSwappedFilesAreFound(t *testing.T) {
	fsys := ownFolder(t, 2)
	byKind := map[string][]string{}
	for _, path := range everyFile(t, fsys, ownDir) {
		kind := filepath.Ext(path)
		if name := filepath.Base(path); name == metadataName || name == epochsName {
			kind = name
		}
		byKind[kind] = append(byKind[kind], path)
	}
	tried := 0
	for _, paths := range byKind {
		for i := range len(paths) - 1 {
			a, b := paths[i], paths[i+1]
			if same(t, fsys, a, b) {
				continue
			}
			c := fsys.Clone()
			for _, move := range [][2]string{{a, a + ".x"}, {b, a}, {a + ".x", b}} {
				if err := c.Rename(move[0], move[1]); err != nil {
					t.Fatal(err)
				}
			}
			if len(faults(verifyAt(t, c, ownDir))) == 0 {
				t.Errorf("%s and %s changed places, and nothing is said", a, b)
			}
			tried++
		}
	}
	if tried < 20 {
		t.Errorf("only %d pairs", tried)
	}
}

func same(t *testing.T, fsys vfs.FS, a, b string) bool {
	t.Helper()
	x, err := vfs.ReadFile(fsys, a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := vfs.ReadFile(fsys, b)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Equal(x, y)
}
