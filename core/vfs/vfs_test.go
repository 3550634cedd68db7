package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// each runs a test on every file system.
func each(t *testing.T, f func(t *testing.T, fsys FS, dir string)) {
	t.Run("OS", func(t *testing.T) { f(t, OS(), t.TempDir()) })
	t.Run("Mem", func(t *testing.T) { f(t, NewMem(), "/") })
	t.Run("Faults", func(t *testing.T) { f(t, WithFaults(NewMem()), "/") })
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, fsys FS, path, content string) {
	t.Helper()
	f := must(fsys.Create(path))(t)
	must(f.WriteAt([]byte(content), 0))(t)
	ok(t, f.Close())
}

func TestFilesAndNames(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, fsys FS, dir string) {
		sub := filepath.Join(dir, "a", "b")
		ok(t, fsys.MkdirAll(sub))
		ok(t, fsys.MkdirAll(sub))
		path := filepath.Join(sub, "f")
		if _, err := fsys.Open(path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("open of nothing: %v", err)
		}
		f := must(fsys.Create(path))(t)
		must(f.WriteAt([]byte("world"), 6))(t)
		must(f.WriteAt([]byte("hello"), 0))(t)
		if n := must(f.Size())(t); n != 11 {
			t.Fatalf("size %d", n)
		}
		buf := make([]byte, 20)
		if n, err := f.ReadAt(buf, 0); n != 11 || err != io.EOF || string(buf[:n]) != "hello\x00world" {
			t.Fatalf("read %q, %v", buf[:n], err)
		}
		ok(t, f.Truncate(3))
		ok(t, f.Truncate(5))
		if b := must(ReadFile(fsys, path))(t); string(b) != "hel\x00\x00" {
			t.Fatalf("after truncate %q", b)
		}
		ok(t, f.Sync())
		ok(t, fsys.SyncDir(sub))
		ok(t, f.Close())
		if _, err := f.ReadAt(buf, 0); !errors.Is(err, fs.ErrClosed) {
			t.Fatalf("read of a closed file: %v", err)
		}
		r := must(fsys.OpenRead(path))(t)
		if _, err := r.WriteAt([]byte("x"), 0); err == nil {
			t.Fatal("wrote to a file opened for reading")
		}
		ok(t, fsys.Rename(path, filepath.Join(sub, "g")))
		put(t, fsys, path, "other")
		ok(t, fsys.Rename(path, filepath.Join(sub, "g")))
		if n, err := r.ReadAt(buf, 0); n != 5 || err != io.EOF {
			t.Fatalf("a replaced file ends for its readers: %d, %v", n, err)
		}
		ok(t, r.Close())
		if names := must(fsys.List(sub))(t); !slices.Equal(names, []string{"g"}) {
			t.Fatalf("names %v", names)
		}
		if i := must(fsys.Stat(filepath.Join(sub, "g")))(t); i.Size != 5 || i.Dir {
			t.Fatalf("stat %+v", i)
		}
		if i := must(fsys.Stat(sub))(t); !i.Dir {
			t.Fatalf("stat of a folder %+v", i)
		}
		if err := fsys.Remove(sub); err == nil {
			t.Fatal("removed a folder that is not empty")
		}
		ok(t, RemoveAll(fsys, filepath.Join(dir, "a")))
		ok(t, RemoveAll(fsys, filepath.Join(dir, "a")))
		if _, err := fsys.Stat(sub); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("still there: %v", err)
		}
	})
}

func TestWriteFileIsAtomic(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, fsys FS, dir string) {
		path := filepath.Join(dir, "f")
		for _, content := range []string{"one", "two, longer", ""} {
			ok(t, WriteFile(fsys, path, []byte(content), true))
			if b := must(ReadFile(fsys, path))(t); string(b) != content {
				t.Fatalf("%q, want %q", b, content)
			}
		}
		put(t, fsys, path+TempSuffix, "left over")
		ok(t, RemoveTemp(fsys, dir))
		if names := must(fsys.List(dir))(t); !slices.Equal(names, []string{"f"}) {
			t.Fatalf("names %v", names)
		}
	})
	mem := NewMem()
	ok(t, WriteFile(mem, "f", []byte("old"), true))
	faults := WithFaults(mem)
	seen := map[string]int{}
	faults.OnOp(func(op Op) {
		for seed := range uint64(50) {
			b, err := ReadFile(mem.CrashClone(seed), "f")
			if err != nil || string(b) != "old" && string(b) != "new, longer" {
				t.Fatalf("seed %d, before %+v: %q, %v", seed, op, b, err)
			}
			seen[string(b)]++
		}
	})
	ok(t, WriteFile(faults, "f", []byte("new, longer"), true))
	if len(seen) != 2 {
		t.Fatalf("no crash came between: %v", seen)
	}
	for seed := range uint64(50) {
		if b, err := ReadFile(mem.CrashClone(seed), "f"); err != nil || string(b) != "new, longer" {
			t.Fatalf("seed %d, at the end: %q, %v", seed, b, err)
		}
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, fsys FS, dir string) {
		path := filepath.Join(dir, ".lock")
		first := must(fsys.Lock(path))(t)
		if _, err := fsys.Lock(path); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
			t.Fatalf("second lock: %v", err)
		}
		ok(t, first.Close())
		ok(t, must(fsys.Lock(path))(t).Close())
	})
}

// TestLockOfAnotherProcess runs itself as the other process.
func TestLockOfAnotherProcess(t *testing.T) {
	if path := os.Getenv("VFS_LOCK"); path != "" {
		_, err := OS().Lock(path)
		fmt.Printf("locked=%v", errors.Is(err, ErrLocked))
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), ".lock")
	lock := must(OS().Lock(path))(t)
	other := func() string {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestLockOfAnotherProcess$")
		cmd.Env = append(os.Environ(), "VFS_LOCK="+path)
		return string(must(cmd.Output())(t))
	}
	if out := other(); !strings.Contains(out, "locked=true") {
		t.Fatalf("the other process said %q", out)
	}
	ok(t, lock.Close())
	if out := other(); !strings.Contains(out, "locked=false") {
		t.Fatalf("the other process said %q", out)
	}
}

// TestMemAgainstModel compares a memory file with a plain slice.
func TestMemAgainstModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := must(NewMem().Create("f"))(t)
		var model []byte
		for range 200 {
			switch rng.IntN(4) {
			case 0, 1:
				off := rng.IntN(len(model) + 1 + rng.IntN(2)*3000)
				p := bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(1+rng.IntN(100_000)))
				must(f.WriteAt(p, int64(off)))(t)
				if len(p) > 0 {
					model = append(model, make([]byte, max(0, off+len(p)-len(model)))...)
					copy(model[off:], p)
				}
			case 2:
				size := rng.IntN(len(model) + 2000)
				if rng.IntN(4) > 0 {
					size = max(len(model)-rng.IntN(5000), 0)
				}
				ok(t, f.Truncate(int64(size)))
				model = append(model, make([]byte, max(0, size-len(model)))...)[:size]
			default:
				off := rng.IntN(len(model) + 10)
				p := make([]byte, rng.IntN(200_000))
				n, err := f.ReadAt(p, int64(off))
				want := model[min(off, len(model)):min(off+len(p), len(model))]
				if !bytes.Equal(p[:n], want) || (err == io.EOF) != (n < len(p)) {
					t.Fatalf("seed %d: read %d at %d of %d: %d, %v", seed, len(p), off, len(model), n, err)
				}
			}
			if n := must(f.Size())(t); n != int64(len(model)) {
				t.Fatalf("seed %d: size %d, want %d", seed, n, len(model))
			}
		}
	}
}

// TestCrashKeepsWhatWasSynced checks both sides: what was synced is there whatever the seed, and what was not is lost, kept,
// torn and full of holes, each for some seed.
func TestCrashKeepsWhatWasSynced(t *testing.T) {
	t.Parallel()
	mem := NewMem()
	f := must(mem.Create("f"))(t)
	synced := bytes.Repeat([]byte("S"), 2000)
	must(f.WriteAt(synced, 0))(t)
	ok(t, f.Sync())
	ok(t, mem.SyncDir("/"))
	must(f.WriteAt(bytes.Repeat([]byte("u"), 5000), 2000))(t)
	var none, all, torn, hole, shorter int
	for seed := range uint64(200) {
		b := must(ReadFile(mem.CrashClone(seed), "f"))(t)
		again := must(ReadFile(mem.CrashClone(seed), "f"))(t)
		if !bytes.Equal(b, again) {
			t.Fatalf("seed %d gives two clones", seed)
		}
		if len(b) < 2000 || !bytes.Equal(b[:2000], synced) {
			t.Fatalf("seed %d: synced bytes are gone (%d left)", seed, len(b))
		}
		tail := b[2000:]
		switch n := bytes.Count(tail, []byte("u")); {
		case len(tail) == 0:
			none++
		case n == 5000:
			all++
		case n == len(tail):
			shorter++
			if len(tail)%sector != 0 {
				torn++
			}
		default:
			hole++
		}
	}
	if none == 0 || all == 0 || torn == 0 || hole == 0 || shorter == 0 {
		t.Fatalf("too kind: none %d all %d torn %d hole %d shorter %d", none, all, torn, hole, shorter)
	}
}

func TestCrashBringsBackOverwrittenBytes(t *testing.T) {
	t.Parallel()
	mem := NewMem()
	f := must(mem.Create("f"))(t)
	must(f.WriteAt([]byte("synced and long"), 0))(t)
	ok(t, f.Sync())
	ok(t, mem.SyncDir("/"))
	ok(t, f.Truncate(6))
	must(f.WriteAt([]byte("!"), 6))(t)
	seen := map[string]bool{}
	for seed := range uint64(100) {
		seen[string(must(ReadFile(mem.CrashClone(seed), "f"))(t))] = true
	}
	if !seen["synced and long"] || !seen["synced!"] {
		t.Fatalf("%v", seen)
	}
	ok(t, f.Sync())
	for seed := range uint64(20) {
		if b := must(ReadFile(mem.CrashClone(seed), "f"))(t); string(b) != "synced!" {
			t.Fatalf("seed %d: %q after sync", seed, b)
		}
	}
}

func TestCrashAndNames(t *testing.T) {
	t.Parallel()
	build := func() *Mem {
		mem := NewMem()
		ok(t, mem.MkdirAll("d"))
		ok(t, mem.SyncDir("/"))
		put(t, mem, "d/old", "o")
		put(t, mem, "d/moved", "m")
		for _, name := range []string{"d/old", "d/moved"} {
			f := must(mem.Open(name))(t)
			ok(t, f.Sync())
			ok(t, f.Close())
		}
		ok(t, mem.SyncDir("d"))
		put(t, mem, "d/new", "n")
		ok(t, mem.Remove("d/old"))
		ok(t, mem.Rename("d/moved", "d/target"))
		return mem
	}
	seen := map[string]bool{}
	mem := build()
	for seed := range uint64(200) {
		names := must(mem.CrashClone(seed).List("d"))(t)
		if slices.Contains(names, "moved") == slices.Contains(names, "target") {
			t.Fatalf("seed %d: a rename was torn: %v", seed, names)
		}
		seen[strings.Join(names, " ")] = true
	}
	for _, want := range []string{"moved old", "new target", "moved new old", "moved", "old target"} {
		if !seen[want] {
			t.Errorf("no seed left the names %q, only %v", want, seen)
		}
	}
	ok(t, mem.SyncDir("d"))
	for seed := range uint64(20) {
		if names := must(mem.CrashClone(seed).List("d"))(t); strings.Join(names, " ") != "new target" {
			t.Fatalf("seed %d: %v after SyncDir", seed, names)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	f := WithFaults(NewMem())
	file := must(f.Create("a.log"))(t)
	remove := f.Add(Rule{Kinds: OpWrite, Path: "*.log", Nth: 2, Err: syscall.ENOSPC, Short: 3})
	must(file.WriteAt([]byte("first"), 0))(t)
	if n, err := file.WriteAt([]byte("second"), 5); n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%d, %v", n, err)
	}
	must(file.WriteAt([]byte("third"), 5))(t)
	if b := must(ReadFile(f, "a.log"))(t); string(b) != "firstthird" {
		t.Fatalf("%q", b)
	}
	remove()
	remove = f.Add(Rule{Kinds: OpSync | OpCreate, Err: syscall.EIO})
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if _, err := f.Create("b"); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	remove()
	before := f.Ops()
	var ops []Op
	f.OnOp(func(op Op) { ops = append(ops, op) })
	ok(t, file.Sync())
	if len(ops) != 1 || ops[0] != (Op{Seq: before + 1, Kind: OpSync, Path: "a.log"}) {
		t.Fatalf("%+v", ops)
	}
	if k := OpSync | OpCreate; k.String() != "create|sync" {
		t.Fatal(k)
	}
}

// TestFailedSync is rule 3: after a sync that failed, only what is written again becomes durable.
func TestFailedSync(t *testing.T) {
	mem := NewMem()
	disk := WithFaults(mem)
	f, err := disk.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	write := func(at int64, text string) {
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	write(0, "safe")
	if err := errors.Join(f.Sync(), disk.SyncDir("")); err != nil {
		t.Fatal(err)
	}
	heal := disk.Add(Rule{Kinds: OpSync, Err: syscall.EIO})
	write(4, "lost again")
	write(0, "S")
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	heal()
	write(9, "AGAIN")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		switch got, err := ReadFile(mem.CrashClone(seed), "f"); {
		case err != nil:
			t.Fatal(err)
		case len(got) != 14 || string(got[9:]) != "AGAIN":
			t.Fatalf("seed %d: %q", seed, got)
		case string(got[:9]) == "safe\x00\x00\x00\x00\x00":
			return
		}
	}
	t.Error("what the failed sync dropped comes back in every power cut")
}
