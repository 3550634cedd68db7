package workload_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
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
	} {
		t.Run(c.name+"/crashes", func(t *testing.T) {
			t.Parallel()
			node := brokertest.StartNode(t)
			n := seed(t)
			tick := make(chan struct{}, 1)
			o := workload.Options{Seeds: node.Seeds(), Dial: node.Dial, Duration: time.Hour, Seed: n, Progress: func(workload.Progress) {
				select {
				case tick <- struct{}{}:
				default:
				}
			}}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			type result struct {
				out workload.Outcome
				err error
			}
			done := make(chan result, 1)
			go func() {
				out, err := c.run(ctx, o)
				done <- result{out, err}
			}()
			for i := range 4 {
				for range 5 { // tenths of a second under load
					<-tick
				}
				node.Crash(t, n+uint64(i))
			}
			stop()
			r := <-done
			t.Log(r.out.Summary)
			if r.err != nil || r.out.Found != 0 {
				t.Errorf("%v: %s", r.err, strings.Join(r.out.Findings, "\n"))
			}
		})
		t.Run(c.name+"/lies", func(t *testing.T) {
			t.Parallel()
			l := &liar{b: brokertest.Start(t), lie: lie}
			out, err := c.run(t.Context(), workload.Options{Seeds: l.b.Seeds(), Dial: l.Dial, Duration: 2 * time.Second, Seed: seed(t), Patience: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if l.lies.Load() == 0 || out.Found == 0 || !strings.Contains(strings.Join(out.Findings, "\n"), c.want) {
				t.Errorf("%d lies: %+v", l.lies.Load(), out)
			}
		})
	}
}
