package workload_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/txn/history"
	"github.com/millrace/millrace/txn/history/historytest"
	"github.com/millrace/millrace/txn/history/workload"
)

// enough says that a history has a bit of everything. Tests wait for that and not for a
// time, as machines may be slow.
func enough(p workload.Progress) bool {
	most := int64(1)
	if os.Getenv("MILLRACE_SOAK") != "" {
		most = 50
	}
	return p.Done >= 1500*most && p.Failed >= 40*most && p.Consumed >= 50*most
}

// worker is a run of clients that stops when the test says so.
type worker struct {
	events []history.Event
	tick   chan workload.Progress // a tenth of a second of work; what nobody takes is dropped
	stop   context.CancelFunc
	done   chan error
}

// start lets clients work until there is enough of what a test wants.
func start(t *testing.T, o workload.Options, enough func(workload.Progress) bool) *worker {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	w := &worker{tick: make(chan workload.Progress, 1), stop: stop, done: make(chan error, 1)}
	o.Duration = time.Hour
	o.Progress = func(p workload.Progress) {
		if enough(p) {
			stop()
		}
		select {
		case w.tick <- p:
		default:
		}
	}
	go func() {
		var err error
		w.events, err = workload.Run(ctx, o)
		w.done <- err
	}()
	return w
}

// wait returns the history.
func (w *worker) wait(t *testing.T) []history.Event {
	t.Helper()
	if err := <-w.done; err != nil {
		t.Fatal(err)
	}
	return w.events
}

// verdict checks a history and shows the report. One with an anomaly is kept.
func verdict(t *testing.T, events []history.Event) *history.Report {
	t.Helper()
	r, err := history.Check(events)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	if !r.Valid() {
		t.Errorf("anomalies: %v", r.Errors())
		keep(t, events)
	}
	return r
}

func keep(t *testing.T, events []history.Event) {
	t.Helper()
	var b []byte
	for i := range events {
		b = append(events[i].AppendText(b), '\n')
	}
	name := filepath.Join(os.TempDir(), fmt.Sprintf("millrace-history-%d.txt", time.Now().UnixNano()))
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Error(err)
		return
	}
	t.Logf("the history is in %s", name)
}

// busy fails when a history shows too little to say anything.
func busy(t *testing.T, r *history.Report, events []history.Event) {
	t.Helper()
	consumed := 0
	for i := range events {
		for _, s := range events[i].Steps {
			if s.Kind == history.StepOffsets && events[i].Type == history.OK {
				consumed++
			}
		}
	}
	if r.Stats.Committed < 20 || r.Stats.Aborted == 0 || consumed == 0 {
		t.Errorf("%d transactions committed, %d aborted, %d operations of groups: the history shows nothing", r.Stats.Committed, r.Stats.Aborted, consumed)
	}
}

// TestHealthy: an undisturbed broker has no anomaly, and a history of it that is spoilt
// has one.
func TestHealthy(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	n := seedtest.New(t)
	var phases []workload.Phase
	events := start(t, workload.Options{Seeds: b.Seeds(), Dial: b.Dial, Seed: n}, func(p workload.Progress) bool {
		if !slices.Contains(phases, p.Phase) {
			phases = append(phases, p.Phase)
		}
		return enough(p)
	}).wait(t)
	if phases[0] != workload.Working || phases[len(phases)-1] != workload.Draining {
		t.Errorf("phases %v", phases)
	}
	busy(t, verdict(t, events), events)
	tried := 0
	for _, tamper := range historytest.Tamperings() {
		spoilt := historytest.Clone(events)
		if !tamper.Apply(rand.New(rand.NewPCG(n, 9)), spoilt) {
			t.Logf("%s: a run this short offers no occasion; made histories show it always", tamper.Name)
			continue
		}
		tried++
		r, err := history.Check(spoilt)
		if err != nil {
			t.Fatalf("%s: %v", tamper.Name, err)
		}
		if !slices.ContainsFunc(tamper.Shows, func(c history.Class) bool { return r.Counts[c] > 0 }) {
			t.Errorf("%s: none of %v is found", tamper.Name, tamper.Shows)
		}
	}
	if all := len(historytest.Tamperings()); 2*tried < all {
		t.Errorf("only %d of %d ways to spoil a history found an occasion", tried, all)
	}
}

// TestRestartsAndCrashes: clean restarts and power cuts under load take nothing and
// double nothing.
func TestRestartsAndCrashes(t *testing.T) {
	t.Parallel()
	node := brokertest.StartNode(t)
	n := seedtest.New(t)
	rng := rand.New(rand.NewPCG(n, 3))
	w := start(t, workload.Options{Seeds: node.Seeds(), Dial: node.Dial, Seed: n, Patience: 2 * time.Minute}, func(workload.Progress) bool { return false })
	var now workload.Progress
	tick := func() {
		select {
		case now = <-w.tick:
		case err := <-w.done:
			t.Fatalf("the workload ended early: %v", err)
		}
	}
	for range 6 {
		for range 3 + rng.IntN(10) { // tenths of a second under load
			tick()
		}
		if rng.IntN(3) == 0 {
			node.Restart(t)
		} else {
			node.Crash(t, rng.Uint64())
		}
	}
	for !enough(now) { // undisturbed: a group that is disturbed every second need not come to consuming
		tick()
	}
	w.stop()
	events := w.wait(t)
	busy(t, verdict(t, events), events)
}

// TestBadNetwork: requests whose answers are lost, which are asked again on another
// connection, are delayed, or arrive again after what their client did next, count once.
func TestBadNetwork(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	var now workload.Progress
	o := workload.Options{Seeds: b.Seeds(), Dial: b.Dial, Seed: seedtest.New(t), CutOneIn: 30, DelayOneIn: 60, LateOneIn: 15, OnlyVersion2: true}
	events := start(t, o, func(p workload.Progress) bool {
		now = p
		return enough(p) && p.Cuts >= 50 && p.Delays >= 50 && p.Lates >= 100
	}).wait(t)
	t.Logf("%d connections were cut, %d writes and reads delayed, %d requests late", now.Cuts, now.Delays, now.Lates)
	busy(t, verdict(t, events), events)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]workload.Options{
		"Seeds":      {},
		"Clients":    {Seeds: []string{"x"}, Clients: 1001},
		"Topics":     {Seeds: []string{"x"}, Topics: -1},
		"Partitions": {Seeds: []string{"x"}, Partitions: 1001},
		"Duration":   {Seeds: []string{"x"}, Duration: 25 * time.Hour},
		"Patience":   {Seeds: []string{"x"}, Patience: -1},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "Options."+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
