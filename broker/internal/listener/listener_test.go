package listener

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// script is a service that does what a request's body says.
type script struct {
	mu     sync.Mutex
	parked []func(*Answer)
	file   *osFile
	calls  chan string
	gone   chan struct{}
}

// osFile is a file as the log gives it.
type osFile struct {
	*os.File
	noFd bool
}

func (f *osFile) Fd() (uintptr, bool) { return f.File.Fd(), !f.noFd }

func (s *script) Serve(p *Peer, f *Frame, answer func(*Answer)) error {
	body := string(f.Bytes[8:])
	defer f.Release()
	select {
	case s.calls <- body:
	default:
	}
	switch {
	case body == "refuse":
		return errors.New("not fit to be answered")
	case body == "nothing":
		answer(nil)
	case body == "close":
		a := NewAnswer()
		a.Close = true
		answer(a)
	case body == "park":
		s.mu.Lock()
		s.parked = append(s.parked, answer)
		s.mu.Unlock()
		context.AfterFunc(p.Gone(), func() { close(s.gone) })
	case body == "file":
		a := NewAnswer()
		a.Buf = append(a.Buf, "<"...)
		a.Append(Section{File: s.file, Offset: 3, Len: 200_000})
		a.Buf = append(a.Buf, "|"...)
		a.Append(Section{File: s.file, Offset: 0, Len: 5})
		a.Buf = append(a.Buf, ">"...)
		answer(a)
	default:
		answer(text(body))
	}
	return nil
}

func (s *script) release(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, answer := range s.parked {
		answer(text(body))
	}
	s.parked = nil
}

func text(body string) *Answer {
	a := NewAnswer()
	a.Buf = append(a.Buf, body...)
	return a
}

func newScript() *script { return &script{calls: make(chan string, 100), gone: make(chan struct{})} }

func serve(t *testing.T, s Service, l Limits) (*Listener, func() net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := Serve(ln, "TEST", s, l, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := srv.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return srv, func() net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// frame is a request whose header is eight bytes of zeros.
func frame(body string) []byte { return framed(append(make([]byte, 8), body...)) }

func framed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

func send(t *testing.T, c net.Conn, b ...[]byte) {
	t.Helper()
	if _, err := c.Write(bytes.Join(b, nil)); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn) string {
	t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func closed(t *testing.T, c net.Conn) {
	t.Helper()
	if b, err := io.ReadAll(c); len(b) != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %q, %v; want a closed connection", b, err)
	}
}

func TestAnswersLeaveInRequestOrder(t *testing.T) {
	s := newScript()
	_, dial := serve(t, s, Limits{})
	c := dial()
	send(t, c, frame("park"), frame("b"), frame("nothing"), frame("c"))
	for range 4 {
		<-s.calls
	}
	s.release("a")
	for _, want := range []string{"a", "b", "c"} {
		if got := receive(t, c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFileSections(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := "<" + string(content[3:200_003]) + "|" + string(content[:5]) + ">"
	for _, noFd := range []bool{false, true} {
		s := newScript()
		s.file = &osFile{File: f, noFd: noFd}
		_, dial := serve(t, s, Limits{})
		c := dial()
		send(t, c, frame("x"), frame("file"), frame("y"), frame("file"))
		for i, w := range []string{"x", want, "y", want} {
			if got := receive(t, c); got != w {
				t.Errorf("noFd=%v: answer %d has %d bytes, want %d", noFd, i, len(got), len(w))
			}
		}
	}
}

// A section that ends before its length says cannot be answered any more: the
// length of the answer is out.
func TestShortFileEndsTheConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := newScript()
	s.file = &osFile{File: f}
	_, dial := serve(t, s, Limits{})
	c := dial()
	send(t, c, frame("file"))
	if b, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || len(b) > 1100 {
		t.Errorf("got %d bytes, %v; want the end of the connection", len(b), err)
	}
}

func TestBadFramesCloseTheConnection(t *testing.T) {
	s := newScript()
	_, dial := serve(t, s, Limits{MaxFrame: 1 << 20, MaxControlFrame: 1000})
	head := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	control := append(head(1001), 0, 3, 0, 0)
	commit := append(head(4001), 0, 8, 0, 0)
	for _, b := range map[string][]byte{
		"negative":          head(-1),
		"zero":              head(0),
		"too short":         append(head(3), 1, 2, 3),
		"too long":          head(1<<20 + 1),
		"huge":              head(1<<31 - 1),
		"http":              []byte("GET / HTTP/1.1\r\n\r\n"),
		"control too long":  control,
		"commit too long":   commit,
		"refused":           frame("refuse"),
		"closed by answer":  frame("close"),
		"refused, then one": append(frame("refuse"), frame("x")...),
	} {
		c := dial()
		send(t, c, b)
		closed(t, c)
	}
	c := dial()
	send(t, c, frame("a"), frame("refuse"))
	if got := receive(t, c); got != "a" {
		t.Errorf("the answer before a refused request is %q", got)
	}
	closed(t, c)
}

// A length field alone must not make the broker reserve what it promises.
func TestLengthReservesNothing(t *testing.T) {
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f := newFrame(keyProduce, 100<<20)
			if err := f.fill(bytes.NewReader(make([]byte, 10)), 100<<20); err == nil {
				b.Fatal("a short frame was taken")
			}
		}
	}).AllocedBytesPerOp(); n > 4*largeFrame {
		t.Errorf("a frame that says 100 MiB and has 10 bytes costs %d bytes", n)
	}
}

// A request with a full batch for each of six partitions comes out of a pool, whole and again and again. (Under the race
// detector pools lose a quarter of what they get.)
func TestAllocationsOfLongFrames(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 600_000)
	hugeFrames.Put(hugeFrames.Get()) // there is one, however few rounds the benchmark makes
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f := newFrame(keyProduce, len(body))
			if err := f.fill(bytes.NewReader(body), len(body)); err != nil || !bytes.Equal(f.Bytes, body) {
				b.Fatalf("%d bytes, %v", len(f.Bytes), err)
			}
			f.Release()
		}
	}).AllocedBytesPerOp(); n > hugeFrame/2 {
		t.Errorf("a frame of %d bytes costs %d", len(body), n)
	}
}

func TestReaderWaitsWhenTooMuchIsUnderWay(t *testing.T) {
	for _, l := range []Limits{{MaxRequests: 2}, {MaxBytes: 20}} {
		s := newScript()
		_, dial := serve(t, s, l)
		c := dial()
		send(t, c, frame("park"), frame("b"), frame("c"))
		<-s.calls
		<-s.calls
		select {
		case body := <-s.calls:
			t.Errorf("%+v: request %q was read while two are under way", l, body)
		case <-time.After(50 * time.Millisecond):
		}
		s.release("a")
		for _, want := range []string{"a", "b", "c"} {
			if got := receive(t, c); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	s := newScript()
	_, dial := serve(t, s, Limits{Idle: 20 * time.Millisecond})
	c := dial()
	send(t, c, frame("a"))
	if got := receive(t, c); got != "a" {
		t.Fatalf("got %q", got)
	}
	closed(t, c)

	// Waiting for an answer is not idle.
	c = dial()
	send(t, c, frame("park"))
	select {
	case <-s.gone:
		t.Error("a connection with a parked request was closed")
	case <-time.After(100 * time.Millisecond):
	}
	s.release("late")
	if got := receive(t, c); got != "late" {
		t.Errorf("got %q", got)
	}
}

func TestGoneTellsOfTheEnd(t *testing.T) {
	s := newScript()
	_, dial := serve(t, s, Limits{})
	c := dial()
	send(t, c, frame("park"))
	<-s.calls
	c.Close()
	select {
	case <-s.gone:
	case <-time.After(10 * time.Second):
		t.Fatal("a parked request did not hear that its connection is gone")
	}
	s.release("for nobody") // must not panic, and is released
}

func TestCloseEndsEverything(t *testing.T) {
	s := newScript()
	srv, dial := serve(t, s, Limits{})
	c := dial()
	send(t, c, frame("a"), frame("park"))
	if got := receive(t, c); got != "a" {
		t.Fatalf("got %q", got)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
	closed(t, c)
	if _, err := net.DialTimeout("tcp", srv.Addr().String(), time.Second); err == nil {
		t.Error("the port is still open")
	}
}

func TestManyConnectionsPipelining(t *testing.T) {
	s := newScript()
	_, dial := serve(t, s, Limits{MaxRequests: 8})
	var wg sync.WaitGroup
	for range 8 {
		c := dial()
		wg.Go(func() {
			for i := range 1000 {
				if _, err := c.Write(frame(string(rune('a' + i%26)))); err != nil {
					t.Error(err)
					return
				}
			}
		})
		wg.Go(func() {
			for i := range 1000 {
				if got, want := receive(t, c), string(rune('a'+i%26)); got != want {
					t.Errorf("answer %d is %q, want %q", i, got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A peer that takes its answer slowly gets all of it; one that takes nothing loses
// its connection.
func TestSlowPeer(t *testing.T) {
	const size = 8 << 20
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
	_, dial := serve(t, s, Limits{Write: 500 * time.Millisecond})
	c := dial()
	send(t, c, frame("x"))
	got := 0
	buf := make([]byte, 256<<10)
	for got < size {
		n, err := c.Read(buf)
		if err != nil {
			t.Fatalf("after %d of %d bytes: %v", got, size, err)
		}
		got += n
	}

	c = dial()
	for range 4 {
		send(t, c, frame("x"))
	}
	<-s.gone
	if n, err := io.Copy(io.Discard, c); n >= 4*size {
		t.Errorf("a peer that took nothing got all of it, %v", err)
	}
}

// bulk answers everything with one large section.
type bulk struct {
	file *osFile
	size int
	gone chan struct{} // closed when a connection has ended
	end  sync.Once
}

func (b *bulk) Serve(p *Peer, f *Frame, answer func(*Answer)) error {
	f.Release()
	context.AfterFunc(p.Gone(), func() { b.end.Do(func() { close(b.gone) }) })
	a := NewAnswer()
	a.Append(Section{File: b.file, Len: b.size})
	answer(a)
	return nil
}
