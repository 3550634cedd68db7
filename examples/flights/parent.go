package main

import (
	"bufio"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is what the child writes to its standard output, one JSON object a line.
type progress struct {
	Read    int  `json:"read"`    // flights that the source has committed to the log
	Counted int  `json:"counted"` // flights in the SQLite table
	Done    bool `json:"done"`    // everything that was read has been processed and stored
}

// restarts bounds how often a child may end by itself before the demo gives up.
const restarts = 3

// supervise runs the child, kills it at the chosen moments and starts it again, until it reports that it is done. It
// returns how often it was killed.
func supervise(ctx context.Context, o options, flights int) (kills int, err error) {
	moments := killMoments(o, 2*flights)
	bar := newBar(2 * flights)
	defer bar.close()
	failures := 0
	for {
		killed, done, err := runChild(ctx, o, func(p progress) (kill bool) {
			bar.show(p, kills)
			kill = len(moments) > 0 && p.Read+p.Counted >= moments[0] && !p.Done
			return kill
		})
		switch {
		case ctx.Err() != nil:
			return kills, ctx.Err()
		case done && len(moments) > 0:
			return kills, fmt.Errorf("the job was through before kill %d of %d; try another --seed than %d", kills+1, o.kills, o.seed)
		case done:
			return kills, nil
		case killed:
			kills++
			moments = moments[1:]
		default:
			if failures++; failures > restarts {
				return kills, fmt.Errorf("the job ended by itself %d times, last: %w", failures, err)
			}
		}
	}
}

// killMoments picks the amounts of work (flights read plus flights counted) at which the child is killed, in order.
func killMoments(o options, work int) []int {
	rng := rand.New(rand.NewPCG(o.seed, 2001))
	var at []int
	for range o.kills {
		at = append(at, work/20+rng.IntN(work*7/10))
	}
	slices.Sort(at)
	return at
}

// runChild starts one child and feeds its progress to look; when look says so, the child gets SIGKILL.
func runChild(ctx context.Context, o options, look func(progress) bool) (killed, done bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, false, err
	}
	cmd := exec.CommandContext(ctx, self, o.childArgs()...)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, false, err
	}
	var stderr tail
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return false, false, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var p progress
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			continue // not a progress line
		}
		if done = p.Done; look(p) {
			killed = true
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return false, false, err
			}
			break
		}
	}
	err = cmd.Wait()
	if killed {
		return true, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return false, done, lines.Err()
}

// tail keeps the last kilobytes that were written to it.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - 4096; over > 0 {
		t.b = t.b[over:]
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }

// bar draws where a terminal is, and prints a line a quarter where none is.
type bar struct {
	drawn   *progressbar.ProgressBar
	out     io.Writer
	total   int
	printed int // quarters
}

func newBar(total int) *bar {
	b := &bar{out: os.Stderr, total: total}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		b.drawn = progressbar.NewOptions(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetWidth(30),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(50*time.Millisecond))
	}
	return b
}

func (b *bar) show(p progress, kills int) {
	text := fmt.Sprintf("%d read, %d counted, killed %d×", p.Read, p.Counted, kills)
	if b.drawn != nil {
		b.drawn.Describe(text)
		ignore(b.drawn.Set(min(p.Read+p.Counted, b.total)))
		return
	}
	if quarter := 4 * (p.Read + p.Counted) / max(b.total, 1); quarter > b.printed {
		b.printed = quarter
		ignore2(fmt.Fprintln(b.out, text))
	}
}

func (b *bar) close() {
	if b.drawn != nil {
		ignore(b.drawn.Finish())
	}
}

// A bar that cannot be drawn must not stop the demo.
func ignore(error)       {}
func ignore2(int, error) {}
