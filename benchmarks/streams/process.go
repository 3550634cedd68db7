package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/benchmarks/rig"
)

// mark is a moment of a job: when the job says it was, and what processor time had been used when we heard of it.
type mark struct {
	at          time.Time
	job, broker time.Duration
}

// process is a job in a process of its own.
type process struct {
	rig.Vitals
	cmd    *exec.Cmd
	in     io.Closer
	broker *rig.Process
	log    rig.Tail
	began  time.Time
	marks  map[string]mark // heard so far
	heard  chan told       // closed when the process has closed its output
	many   int64           // records processed, told at the end
}

// told is one line of a job about itself.
type told struct {
	what  string
	value int64
	mark  mark
}

// startJob runs a job beside a broker.
func (f flags) startJob(s spec, broker *rig.Process) (*process, error) {
	cmd, err := f.command(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, broker: broker, marks: map[string]mark{}, heard: make(chan told, 16)}
	cmd.Stderr = &p.log
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.began = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.PID = cmd.Process.Pid
	go p.listen(out)
	return p, nil
}

// listen reads what the job prints: its own lines begin with "@ ", others are kept for an error message.
func (p *process) listen(out io.Reader) {
	defer close(p.heard)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "@ ")
		what, number, _ := strings.Cut(rest, " ")
		value, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			fmt.Fprintln(&p.log, lines.Text())
			continue
		}
		p.heard <- told{what, value, mark{time.Unix(0, value), p.CPU(), p.broker.CPU()}}
	}
}

// now is a mark of this moment.
func (p *process) now() mark { return mark{time.Now(), p.CPU(), p.broker.CPU()} }

// await waits until the job has told something.
func (p *process) await(ctx context.Context, what string) (mark, error) {
	for {
		if m, ok := p.marks[what]; ok {
			return m, nil
		}
		select {
		case t, ok := <-p.heard:
			if !ok {
				return mark{}, fmt.Errorf("the job has ended before its %s record: %s", what, p.end())
			}
			p.take(t)
		case <-ctx.Done():
			return mark{}, fmt.Errorf("no %s record: %w: %s", what, context.Cause(ctx), p.log.String())
		}
	}
}

func (p *process) take(t told) {
	if t.what == "processed" {
		p.many = t.value
		return
	}
	p.marks[t.what] = t.mark
}

// again is how many records the job has processed a second time, when it has ended; fewer than there are is an error.
func (p *process) again(total int64) (int64, error) {
	if p.many < total {
		return 0, fmt.Errorf("%d records were processed, there are %d", p.many, total)
	}
	return p.many - total, nil
}

// end is what the process has last said, for a message.
func (p *process) end() string { return p.log.String() }

// stop lets the job end in order.
func (p *process) stop() error {
	return errors.Join(p.in.Close(), p.wait())
}

// kill ends it with SIGKILL.
func (p *process) kill() error {
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := p.wait(); err != nil && !errors.As(err, &exit) { // an exit error is what a kill looks like
		return err
	}
	return nil
}

// wait takes what is still told, and the end.
func (p *process) wait() error {
	late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() /* it may have ended */ })
	defer late.Stop()
	for t := range p.heard {
		p.take(t)
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the job: %w: %s", err, p.log.String())
	}
	return nil
}
