package rig

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Process is a broker that the benchmark starts, kills and starts again: ours or a peer's.
type Process struct {
	Vitals
	Name    string
	Dir     string // data folder; empty: in memory
	Addr    string
	prepare func(context.Context, *Process) error     // once, before the first start; nil = nothing
	command func(context.Context, *Process) *exec.Cmd // what runs it
	cmd     *exec.Cmd
	log     Tail
	Ready   time.Duration // of the last start, from exec to the first answered request
}

// NewProcess is a broker that command runs, named for pages; dir is its data folder, empty for one in memory.
func NewProcess(name, dir, addr string, command func(context.Context, *Process) *exec.Cmd) *Process {
	return &Process{Name: name, Dir: dir, Addr: addr, command: command}
}

// Tail keeps the end of what a process prints.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4 << 10

// Write implements io.Writer.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if n := len(t.text); n > tailBytes {
		t.text = append(t.text[:0], t.text[n-tailBytes:]...)
	}
	return len(b), nil
}

// String is the end of what was written.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// FreeAddress finds a free port on the loopback interface.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

const startLimit = 2 * time.Minute

// Start runs the broker and waits until it has answered a request.
func (p *Process) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if p.prepare != nil {
		if err := p.prepare(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		p.prepare = nil
	}
	// The process outlives this call and its context.
	p.cmd = p.command(context.WithoutCancel(ctx), p)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.PID = p.cmd.Process.Pid
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if err := Ping(p.Addr); err == nil {
			p.Ready = time.Since(began)
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer at %s:\n%s", p.Name, p.Addr, p.log.String()), p.Kill())
		}
	}
}

// Ping asks for the versions of the APIs (ApiVersions, version 0) and waits for an answer without an error.
func Ping(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	const correlation = 77
	req := binary.BigEndian.AppendUint32(nil, 10)
	req = binary.BigEndian.AppendUint16(req, 18)
	req = binary.BigEndian.AppendUint16(req, 0)
	req = binary.BigEndian.AppendUint32(req, correlation)
	req = binary.BigEndian.AppendUint16(req, 0xffff) // no client id
	if _, err := c.Write(req); err != nil {
		return err
	}
	var head [10]byte // length, correlation, error code
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	if got := binary.BigEndian.Uint32(head[4:]); got != correlation {
		return fmt.Errorf("the answer has correlation id %d, the request had %d", got, correlation)
	}
	if code := binary.BigEndian.Uint16(head[8:]); code != 0 {
		return fmt.Errorf("error code %d", code)
	}
	return nil
}

// Kill ends the broker with SIGKILL, Stop with SIGTERM.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL) }
func (p *Process) Stop() error { return p.end(syscall.SIGTERM) }

func (p *Process) end(s syscall.Signal) error {
	if p.cmd == nil || p.cmd.Process == nil || p.cmd.ProcessState != nil {
		return nil
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	late := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() /* it may have ended */ })
	defer late.Stop()
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) { // an exit error is what a kill looks like
		return err
	}
	return nil
}

// LogBytes is the size of all segments in the data folder.
func (p *Process) LogBytes() (size int64, err error) {
	err = filepath.WalkDir(p.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a file that went while we looked
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
