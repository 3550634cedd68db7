package workload_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/txn/history/workload"
)

// TestCompanions: what can be reckoned in advance comes out, crashes or not, and what a
// broker does wrong shows.
func TestCompanions(t *testing.T) {
	t.Parallel()
	var flips atomic.Int64
	lie := func(r kmsg.Request) bool { // one in ten transactions ends the other way
		e, ok := r.(*kmsg.EndTxnRequest)
		if ok = ok && flips.Add(1)%10 == 0; ok {
			e.Commit = !e.Commit
		}
		return ok
	}
	for _, c := range []struct {
		name string
		run  func(context.Context, workload.Options) (workload.Outcome, error)
		want string // in the findings when lied to
	}{
		{"bank", workload.Bank, "and shows"},
		{"copy", workload.Copy, "lost, doubled or out of order"},
		{"counter", workload.Counter, ""}, // see TestCounterJudges
		{"unique", workload.Unique, ""},   // see TestUniqueJudges
		{"order", workload.Order, "key "},
	} {
		t.Run(c.name+"/crashes", func(t *testing.T) {
			t.Parallel()
			node := brokertest.StartNode(t)
			n := seedtest.New(t)
			w := startCompanion(t, c.run, workload.Options{Seeds: node.Seeds(), Dial: node.Dial, Seed: n, Patience: 2 * time.Minute})
			now := workload.Progress{}
			for i := uint64(0); i < 4 || now.Done < 300; i++ {
				for range 5 { // tenths of a second under load
					now = <-w.tick
				}
				node.Crash(t, n+i)
			}
			out := w.wait(t)
			t.Log(out.Summary)
			if out.Found != 0 {
				t.Error(strings.Join(out.Findings, "\n"))
			}
		})
		if c.want == "" {
			continue
		}
		t.Run(c.name+"/lies", func(t *testing.T) {
			t.Parallel()
			l := &liar{b: brokertest.Start(t), lie: lie}
			w := startCompanion(t, c.run, workload.Options{Seeds: l.b.Seeds(), Dial: l.Dial, Seed: seedtest.New(t), Patience: 4 * time.Second})
			for l.lies.Load() < 20 {
				<-w.tick
			}
			if out := w.wait(t); !strings.Contains(strings.Join(out.Findings, "\n"), c.want) {
				t.Errorf("%d lies: %+v", l.lies.Load(), out)
			}
		})
	}
}

// companionRun is a companion at work.
type companionRun struct {
	tick chan workload.Progress
	stop context.CancelFunc
	done chan error
	out  workload.Outcome
}

func startCompanion(t *testing.T, run func(context.Context, workload.Options) (workload.Outcome, error), o workload.Options) *companionRun {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	w := &companionRun{tick: make(chan workload.Progress, 1), stop: stop, done: make(chan error, 1)}
	o.Duration = time.Hour
	o.Progress = func(p workload.Progress) {
		select {
		case w.tick <- p:
		default:
		}
	}
	go func() {
		var err error
		w.out, err = run(ctx, o)
		w.done <- err
	}()
	return w
}

// wait ends the work and returns what was found.
func (w *companionRun) wait(t *testing.T) workload.Outcome {
	t.Helper()
	w.stop()
	if err := <-w.done; err != nil {
		t.Fatal(err)
	}
	return w.out
}
