package fire

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

var buildDir string // set by TestMain

// binary builds the server once for all tests of this package, unless MILLRACE_BINARY names one.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("MILLRACE_BINARY"); path != "" {
		return path, nil
	}
	path := filepath.Join(buildDir, "millrace")
	out, err := exec.Command("go", "build", "-o", path, "github.com/millrace/millrace/cmd/millrace").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// server is one run after another of the real binary, on the same folder and the same port. One goroutine uses it.
type server struct {
	t      *testing.T
	dir    string
	addr   string
	cmd    *exec.Cmd
	stderr *lockedBuffer
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), addr: "127.0.0.1:0"}
	s.start()
	t.Cleanup(func() {
		if s.cmd != nil {
			s.end(syscall.SIGKILL)
		}
	})
	return s
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// start runs the binary and returns when its ready line is out.
func (s *server) start() {
	s.t.Helper()
	bin, err := binary()
	if err != nil {
		s.t.Fatalf("building the server: %v", err)
	}
	s.cmd = exec.Command(bin, "server", "--data-dir", s.dir, "--listen", s.addr, "--group-initial-rebalance-delay", "100ms")
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.stderr = &lockedBuffer{}
	s.cmd.Stderr = s.stderr
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if a := address.FindString(lines.Text()); a != "" {
			s.addr = a
			return
		}
	}
	err = s.cmd.Wait()
	s.cmd = nil
	s.t.Fatalf("the server ended without a ready line: %v\n%s", err, s.stderr)
}

// end ends the server with a signal. After SIGTERM it must have ended in order.
func (s *server) end(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatalf("%v: %v\n%s", signal, err, s.stderr)
	}
	err := s.cmd.Wait()
	if (err == nil) != (signal == syscall.SIGTERM) {
		s.t.Fatalf("the server ended with %v after %v\n%s", err, signal, s.stderr)
	}
	if log := s.stderr.String(); strings.Contains(log, "panic") || strings.Contains(log, "DATA RACE") {
		s.t.Fatalf("the server's log:\n%s", log)
	}
	s.cmd = nil
}

// bounce ends the server and starts it again.
func (s *server) bounce(signal syscall.Signal) {
	s.t.Helper()
	s.end(signal)
	s.start()
}

// lockedBuffer keeps the end of what a process says.
type lockedBuffer struct {
	mu   sync.Mutex
	said []byte
}

const mostSaid = 64 << 10

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, p...)
	if over := len(b.said) - mostSaid; over > 0 {
		b.said = append(b.said[:0], b.said[over:]...)
	}
	return len(p), nil
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.said)
}
