package kill

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// binary builds the server once for all tests of this package.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "millrace")
	out, err := exec.Command("go", "build", "-o", path, "github.com/millrace/millrace/cmd/millrace").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

var buildDir string // set by TestMain

// server is one run after another of the binary, on the same folder and the same port.
type server struct {
	t      *testing.T
	dir    string
	addr   string
	flags  []string
	files  int // how many it may have open, 0 for as many as this process
	cmd    *exec.Cmd
	stderr strings.Builder
}

func startServer(t *testing.T, flags ...string) *server {
	s := &server{t: t, dir: t.TempDir(), addr: "127.0.0.1:0", flags: flags}
	s.start()
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
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
	s.cmd = exec.Command(bin, append([]string{"server", "--data-dir", s.dir, "--listen", s.addr}, s.flags...)...)
	if s.files > 0 {
		s.cmd = exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, s.files), "sh"}, s.cmd.Args...)...)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.stderr.Reset()
	s.cmd.Stderr = &s.stderr
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if a := address.FindString(lines.Text()); a != "" {
			s.addr = a
			if _, _, err := net.SplitHostPort(a); err != nil {
				s.t.Fatal(err)
			}
			return
		}
	}
	err = s.cmd.Wait()
	s.cmd = nil
	s.t.Fatalf("the server ended without a ready line: %v\n%s", err, s.stderr.String())
}

func (s *server) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatalf("kill: %v\n%s", err, s.stderr.String())
	}
	if err := s.cmd.Wait(); err == nil {
		s.t.Fatalf("the server ended by itself before the kill\n%s", s.stderr.String())
	}
	if out := s.stderr.String(); strings.Contains(out, "panic") || strings.Contains(out, "DATA RACE") {
		s.t.Fatalf("the server's log:\n%s", out)
	}
	s.cmd = nil
}
