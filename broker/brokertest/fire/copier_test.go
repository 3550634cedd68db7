package fire

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program is something that copies.
type program struct {
	name      string
	groupOnly bool
	command   func(j *job) *exec.Cmd
}

// asProgram in the environment makes the test binary the copier.
const asProgram = "MILLRACE_FIRE_COPIER"

// ours is the program on txn/session, or on its sister on Sarama.
func ours(t *testing.T, onSarama bool) program {
	name := "txn/session"
	if onSarama {
		name += "/onsarama"
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program{name, onSarama, func(j *job) *exec.Cmd {
		j.sarama = onSarama
		cmd := exec.Command(self, j.args()...)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		return cmd
	}}
}

// kafkas is Apache Kafka's own copier. It is skipped where it can not be had.
func kafkas(t *testing.T) program {
	jars := os.Getenv("MILLRACE_KAFKA_JARS")
	if jars == "" {
		t.Skip("MILLRACE_KAFKA_JARS does not name a folder with Apache Kafka's jars (make test-fire fetches them)")
	}
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skipf("no Java: %v", err)
	}
	return program{"Apache Kafka's TransactionalMessageCopier", false, func(j *job) *exec.Cmd {
		// A small heap and the first compiler: the program lives for seconds, several at a time.
		vm := []string{"-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars + "/*", "org.apache.kafka.tools.TransactionalMessageCopier"}
		return exec.Command(java, append(vm, j.args()...)...)
	}}
}

// copier keeps one copier alive: a process that ends before its work is done, by a signal or for a reason of its own, is
// started again.
type copier struct {
	t       *testing.T
	program program
	job     job
	done    chan struct{} // closed when the work is done, or the copier was given up

	mu      sync.Mutex // guards what follows
	cmd     *exec.Cmd
	stderr  *lockedBuffer
	stopped bool // no more starts
	starts  int
	broke   int   // ends without a signal of ours
	err     error // why it was given up
	shot    bool  // the process that runs was sent a signal
}

// mostBroken is how often a copier may end for reasons of its own. It does so when a broker's end makes it give up.
const mostBroken = 50

func startCopier(t *testing.T, p program, j job) *copier {
	t.Helper()
	c := &copier{t: t, program: p, job: j, done: make(chan struct{})}
	t.Cleanup(c.stop)
	go c.keep()
	return c
}

func (c *copier) keep() {
	defer close(c.done)
	for {
		cmd, err := c.start()
		if err != nil || cmd == nil {
			c.giveUp(err)
			return
		}
		err = cmd.Wait()
		c.mu.Lock()
		shot, said := c.shot, c.stderr.String()
		if err != nil && !shot {
			c.broke++
		}
		broke, stopped := c.broke, c.stopped
		c.mu.Unlock()
		switch {
		case err == nil && !shot:
			return
		case stopped:
			return
		case broke > mostBroken:
			c.giveUp(errors.New(said))
			return
		case !shot:
			c.t.Logf("copier %s ended by itself, %v:\n%s", c.job.id, err, lastLines(said, 400))
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func lastLines(s string, n int) string { return s[max(0, len(s)-n):] }

func (c *copier) start() (*exec.Cmd, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, nil
	}
	c.cmd, c.stderr, c.shot = c.program.command(&c.job), &lockedBuffer{}, false
	c.cmd.Stderr = c.stderr
	c.starts++
	return c.cmd, c.cmd.Start()
}

func (c *copier) giveUp(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// bounce ends the process with a signal, if there is one; keep starts the next.
func (c *copier) bounce(signal syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	c.shot = true
	if err := c.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Errorf("%v to copier %s: %v", signal, c.job.id, err)
	}
}

func (c *copier) stop() {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.bounce(syscall.SIGKILL)
	<-c.done
}

// tally is how often the process was started, and how often it ended by itself.
func (c *copier) tally() (starts, broke int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.starts, c.broke, c.err
}
