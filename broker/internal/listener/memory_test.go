package listener

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// inUse is the memory that the process needs now, stacks included.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestMemoryOfConnections: a connection that has been used and is idle takes little memory, so that thousands of them are bounded. The
// peer's side, which is in the process too, is counted with it.
func TestMemoryOfConnections(t *testing.T) {
	const n = 250
	s := newScript()
	_, dial := serve(t, s, Limits{})
	talk := func() {
		c := dial()
		for range 3 {
			send(t, c, frame("a"))
			receive(t, c)
			<-s.calls
		}
	}
	for range 10 {
		talk()
	}
	before, goroutines := inUse(), runtime.NumGoroutine()
	for range n {
		talk()
	}
	each := (inUse() - before) / n
	if most := int64(48 << 10); each > most {
		t.Errorf("an idle connection takes %d bytes, want at most %d", each, most)
	}
	if g := runtime.NumGoroutine() - goroutines; g > 2*n+5 {
		t.Errorf("%d goroutines for %d connections, want two each", g, n)
	}
	t.Logf("%d bytes each", each)
}

// TestSlowReadersCostNoMemory: what a peer has asked for and does not take stays in the file.
func TestSlowReadersCostNoMemory(t *testing.T) {
	const readers, size = 30, 16 << 20
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &bulk{file: &osFile{File: f}, size: size, gone: make(chan struct{})}
	_, dial := serve(t, s, Limits{Write: time.Minute})
	var conns []net.Conn
	before := inUse()
	for range readers {
		c := dial()
		send(t, c, frame("x"), frame("x"))
		conns = append(conns, c)
	}
	var b [1]byte
	for _, c := range conns { // the answer is on its way to each
		if _, err := c.Read(b[:]); err != nil {
			t.Fatal(err)
		}
	}
	if each := (inUse() - before) / readers; each > 128<<10 {
		t.Errorf("a reader that waits for %d bytes costs %d bytes", 2*size, each)
	} else {
		t.Logf("%d bytes each", each)
	}
	for _, c := range conns {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
