package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// process is a broker that the benchmark starts, kills and starts again: ours or a peer's.
type process struct {
	name    string
	dir     string // data folder
	addr    string
	prepare func(context.Context, *process) error     // once, before the first start; nil = nothing
	command func(context.Context, *process) *exec.Cmd // what runs it
	cmd     *exec.Cmd
	log     strings.Builder
	ready   time.Duration // of the last start, from exec to the first answered request
}

// freeAddress finds a free port on the loopback interface.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start runs the broker and waits until it has answered a request.
func (p *process) start(ctx context.Context) error {
	if p.prepare != nil {
		if err := p.prepare(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		p.prepare = nil
	}
	p.cmd = p.command(ctx, p)
	p.log.Reset()
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if err := ping(ctx, p.addr); err == nil {
			p.ready = time.Since(began)
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s does not answer at %s:\n%s", p.name, p.addr, p.log.String()), p.kill())
		}
	}
}

// ping asks for the versions of the APIs, on a connection of its own.
func ping(ctx context.Context, addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err // nobody listens yet; the client below would wait longer than that
	}
	if err := c.Close(); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return cl.Ping(ctx)
}

// kill ends the broker with SIGKILL.
func (p *process) kill() error {
	if p.cmd == nil || p.cmd.ProcessState != nil {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) { // an exit error is what a kill looks like
		return err
	}
	return nil
}

// residentMB reads the broker's resident memory; 0 where /proc does not exist.
func (p *process) residentMB() float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64); err == nil {
				return kb / 1024
			}
		}
	}
	return 0
}

// ticksPerSecond is USER_HZ, which is 100 on every Linux that Go runs on.
const ticksPerSecond = 100

// cpu is the processor time that the broker has used since its start; 0 where /proc does not exist.
func (p *process) cpu() time.Duration {
	if p == nil {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name in parentheses may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

// openFiles counts the broker's descriptors; 0 where /proc does not exist.
func (p *process) openFiles() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return len(entries)
}

// logBytes is the size of all segments in the data folder.
func (p *process) logBytes() (size int64, err error) {
	err = filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
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
