package streams_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams"
)

// The handle of a running application, as its page shows it: paused, given a worker
// more, drained, with each word counted once.
func TestRunningApplication(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := cluster(t)
	if _, err := kadm.NewClient(client(t, b)).CreateTopics(ctx, 3, 1, nil, "words-lines", "words-counts"); err != nil {
		t.Fatal(err)
	}
	in, want := client(t, b), map[string]int64{}
	say := func(line string) {
		t.Helper()
		if err := in.ProduceSync(ctx, &kgo.Record{Topic: "words-lines", Value: []byte(line)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		for w := range strings.FieldsSeq(strings.ToLower(line)) {
			want[w]++
		}
	}
	var mu sync.Mutex
	var states []streams.State
	dir := t.TempDir()
	tell := func(s streams.State) {
		mu.Lock()
		defer mu.Unlock()
		states = append(states, s)
	}
	say("the first line")
	if err := runAndDrain(ctx, b, dir, tell, say); err != nil {
		t.Fatal(err)
	}
	out := client(t, b, kgo.ConsumeTopics("words-counts"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	wait(ctx, t, out, want, map[string]int64{})
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(slices.Compact(states)); !strings.Contains(got, "running paused") || !strings.HasSuffix(got, "stopping stopped]") {
		t.Errorf("states %v", got)
	}
}

func runAndDrain(ctx context.Context, cluster streams.Cluster, dir string, tell func(streams.State), say func(string)) error {
	app := words()
	running, err := app.Start(ctx, cluster, streams.StateDir(dir), streams.OnState(tell))
	if err != nil {
		return err // the topology, the topics, the folder: what Run would refuse
	}
	if err := running.Await(ctx, streams.StateRunning); err != nil {
		return err
	}
	if err := running.Pause(ctx); err != nil { // committed, and at rest
		return err
	}
	say("a line that waits")
	running.Resume()
	if _, err := running.AddWorker(); err != nil { // takes its share of the tasks
		return err
	}
	if _, err := running.RemoveWorker(ctx); err != nil { // and gives it back
		return err
	}
	return running.Drain(ctx) // what is there now is processed to the end; then it stops
}

// Without transactions too the counts are right in peace; what a crash does to them is
// the runtime's tests' matter.
func TestModesOfARun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := cluster(t)
	if _, err := kadm.NewClient(client(t, b)).CreateTopics(ctx, 2, 1, nil, "words-lines", "words-counts"); err != nil {
		t.Fatal(err)
	}
	in, want := client(t, b), map[string]int64{}
	for _, mode := range []streams.RunOpt{streams.AtLeastOnce(), streams.AtMostOnce()} {
		if err := in.ProduceSync(ctx, &kgo.Record{Topic: "words-lines", Value: []byte("once more")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		want["once"]++
		want["more"]++
		running, err := words().Start(ctx, b, mode, streams.TaskIdle(time.Millisecond), streams.InputBytes(1<<20), streams.UncommittedBytes(1<<20),
			streams.OnUncaught(func(error) streams.Uncaught { return streams.ReplaceWorker }))
		if err != nil {
			t.Fatal(err)
		}
		if w := running.Workers(); len(w) != 1 || running.App().ID() != "words" {
			t.Errorf("workers %v of %s", w, running.App().ID())
		}
		if err := running.Drain(ctx); err != nil {
			t.Fatal(err)
		}
		<-running.Done()
		if err := running.Close(ctx, streams.LeaveGroup()); err != nil || running.State() != streams.StateStopped {
			t.Errorf("%s, %v", running.State(), err)
		}
		if _, err := running.AddWorker(); !errors.Is(err, streams.ErrEnded) {
			t.Errorf("a worker was added: %v", err)
		}
	}
	out := client(t, b, kgo.ConsumeTopics("words-counts"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	wait(ctx, t, out, want, map[string]int64{})
}
