package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// server is the built binary on a data folder; it can be killed and started again.
type server struct {
	bin, dir string
	temp     []string // folders to remove at the end
	cmd      *exec.Cmd
	addr     string
	ready    time.Duration // from exec to the first accepted connection, of the last start
}

// newServer builds the binary.
func newServer(ctx context.Context, dir string) (*server, error) {
	build, err := os.MkdirTemp("", "millrace-bench-")
	if err != nil {
		return nil, err
	}
	s := &server{bin: filepath.Join(build, "millrace"), dir: dir, temp: []string{build}}
	if dir == "" {
		s.dir = filepath.Join(build, "data")
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", s.bin, "github.com/millrace/millrace/cmd/millrace")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("building the server: %w", err)
	}
	return s, nil
}

var readyAddress = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// start runs the server and waits until it accepts a connection.
func (s *server) start(ctx context.Context) error {
	s.cmd = exec.CommandContext(ctx, s.bin, "server", "--data-dir", s.dir, "--listen", "127.0.0.1:0")
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr strings.Builder
	s.cmd.Stderr = &stderr
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		s.addr = readyAddress.FindString(lines.Text())
		if s.addr == "" {
			continue
		}
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			return err
		}
		s.ready = time.Since(began)
		return c.Close()
	}
	return fmt.Errorf("the server ended without a ready line: %w\n%s", errors.Join(lines.Err(), s.cmd.Wait()), stderr.String())
}

// kill ends the server with SIGKILL.
func (s *server) kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	if err := s.cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) { // an exit error is what a kill looks like
			return err
		}
	}
	return nil
}

func (s *server) remove() {
	if s.cmd != nil && s.cmd.ProcessState == nil {
		if err := s.kill(); err != nil {
			fmt.Fprintln(os.Stderr, "benchmarks: ending the server:", err)
		}
	}
	for _, d := range s.temp {
		if err := os.RemoveAll(d); err != nil {
			fmt.Fprintln(os.Stderr, "benchmarks:", err)
		}
	}
}

// residentMB reads the server's resident memory, 0 where /proc does not exist.
func (s *server) residentMB() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err == nil {
				return kb / 1024
			}
		}
	}
	return 0
}
