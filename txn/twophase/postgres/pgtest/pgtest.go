// Package pgtest runs throw-away PostgreSQL servers for tests: real ones, with fsync on, on a unix socket in a folder of
// their own, that can be killed and started again.
//
//	pg := pgtest.Start(t)
//	pool, err := pgxpool.New(ctx, pg.DSN())
//
// It needs the programs initdb and postgres, of any version from 11 on; MILLRACE_POSTGRES names their folder if they are not
// in PATH or /usr/lib/postgresql. Where there are none the test is skipped with a clear word, and fails when
// MILLRACE_POSTGRES_REQUIRED is set, as it is in .ci/run.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is one run after another of PostgreSQL on the same folder. Kill, Start and Stop are for one goroutine.
type Server struct {
	t      testing.TB
	bin    string
	dir    string
	as     *syscall.SysProcAttr
	cmd    *exec.Cmd
	exited chan error

	mu  sync.Mutex
	log bytes.Buffer // what the server says, under mu
}

// Write takes what the server says.
func (s *Server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *Server) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Find is the folder with PostgreSQL's programs, "" when there is none.
func Find() string {
	if dir := os.Getenv("MILLRACE_POSTGRES"); dir != "" {
		return dir
	}
	if p, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(p)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is well-formed, so there is no error
	slices.Sort(found)
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// Start makes a server and waits until it takes connections. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	bin := Find()
	if bin == "" {
		if os.Getenv("MILLRACE_POSTGRES_REQUIRED") != "" {
			t.Fatal("PostgreSQL is missing: initdb is neither in PATH nor under /usr/lib/postgresql, and MILLRACE_POSTGRES_REQUIRED is set")
		}
		t.Skip("SKIPPED, PostgreSQL is missing: install it (apt-get install postgresql) or name its folder in MILLRACE_POSTGRES")
	}
	// A socket's path has about 100 bytes at most, which t.TempDir may exceed.
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the server's folder: %v", err)
		}
	})
	s := &Server{t: t, bin: bin, dir: dir, as: unprivileged(t, dir)}
	s.run("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	t.Cleanup(func() {
		if s.cmd != nil {
			s.Kill()
		}
	})
	s.Start()
	return s
}

// unprivileged makes the server's processes run as another user when the test runs as root, whom PostgreSQL refuses.
func unprivileged(t testing.TB, dir string) *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2, os.Chown(dir, uid, gid)); err != nil {
			t.Fatalf("a folder for %s: %v", name, err)
		}
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	t.Fatal("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) run(program string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.as
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// DSN is how to connect.
func (s *Server) DSN() string {
	return fmt.Sprintf("host=%s port=5432 user=postgres dbname=postgres connect_timeout=5", s.dir)
}

// startTime bounds a start, recovery included, on a machine under load.
const startTime = 60 * time.Second

// Start runs the server again after Kill or Stop, and waits until it takes connections.
func (s *Server) Start() {
	s.t.Helper()
	deadline := time.Now().Add(startTime)
	for {
		err := s.boot(deadline)
		if err == nil {
			return
		}
		// Backends that outlive their killed server for a moment keep its memory.
		if time.Now().After(deadline) {
			s.t.Fatalf("PostgreSQL does not start: %v\n%s", err, s.said())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *Server) boot(deadline time.Time) error {
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.dir, "-c", "listen_addresses=",
		"-c", "max_prepared_transactions=64", "-c", "max_connections=64", "-c", "shared_buffers=16MB", "-c", "log_min_messages=warning")
	cmd.Dir, cmd.SysProcAttr = s.dir, s.as
	cmd.Stdout, cmd.Stderr = s, s
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	for {
		err := s.ping()
		if err == nil {
			s.cmd, s.exited = cmd, exited
			return nil
		}
		select {
		case err := <-exited:
			return fmt.Errorf("it ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			kill := cmd.Process.Kill()
			<-exited
			return errors.Join(err, kill)
		}
	}
}

func (s *Server) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }() // it has done its work
	return conn.Ping(ctx)
}

// Kill ends the server by SIGKILL, as a crash does. Its backends notice and end on their own.
func (s *Server) Kill() {
	s.t.Helper()
	s.end(syscall.SIGKILL)
}

// Stop ends the server cleanly, after breaking off what is under way.
func (s *Server) Stop() {
	s.t.Helper()
	s.end(syscall.SIGINT)
}

func (s *Server) end(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("signal %v to PostgreSQL: %v", sig, err)
	}
	<-s.exited
	s.cmd = nil
}
