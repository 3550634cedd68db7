package restore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/streams/internal/restore"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/statetest"
	"github.com/millrace/millrace/txn/session"
)

// log is a changelog topic of one partition and what it must fold to.
type log struct {
	t       *testing.T
	ctx     context.Context
	broker  *broker.Broker
	cluster *session.Cluster
	client  *kgo.Client
	part    session.TopicPartition
	want    map[string]string
}

func newLog(t *testing.T) *log {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	l := &log{t: t, ctx: ctx, broker: brokertest.Start(t), part: session.TopicPartition{Topic: "log"}, want: map[string]string{}}
	var err error
	if l.cluster, err = session.Connect(ctx, session.ClusterOptions{Seeds: l.broker.Seeds(), Dial: l.broker.Dial}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.cluster.Close)
	l.make()
	return l
}

// make creates the topic, after deleting it if there is one. A client remembers
// topics, so there is a new one too.
func (l *log) make() {
	l.t.Helper()
	var err error
	if l.client, err = kgo.NewClient(kgo.SeedBrokers(l.broker.Seeds()...), kgo.Dialer(l.broker.Dial)); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(l.client.Close)
	adm := kadm.NewClient(l.client)
	if _, err := adm.DeleteTopic(l.ctx, "log"); err != nil && !strings.Contains(err.Error(), "UNKNOWN_TOPIC") {
		l.t.Fatal(err)
	}
	if _, err := adm.CreateTopic(l.ctx, 1, 1, nil, "log"); err != nil {
		l.t.Fatal(err)
	}
	clear(l.want)
}

// put appends rows; "k" alone is a tombstone.
func (l *log) put(rows ...string) {
	l.t.Helper()
	for _, row := range rows {
		k, v, ok := strings.Cut(row, "=")
		r := &kgo.Record{Topic: "log", Key: []byte(k)}
		delete(l.want, k)
		if ok {
			r.Value, l.want[k] = []byte(v), v
		}
		if err := l.client.ProduceSync(l.ctx, r).FirstErr(); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *log) id() [16]byte {
	l.t.Helper()
	topics, err := l.cluster.Topics(l.ctx, "log")
	if err != nil {
		l.t.Fatal(err)
	}
	return topics["log"].ID
}

func (l *log) end() int64 {
	l.t.Helper()
	ends, err := l.cluster.List(l.ctx, session.End, []session.TopicPartition{l.part})
	if err != nil {
		l.t.Fatal(err)
	}
	return ends[l.part]
}

func (l *log) job(img state.Image) *restore.Job {
	return &restore.Job{Name: "store", Part: l.part, TopicID: l.id(), End: l.end(), Image: img}
}

func (l *log) run(j *restore.Job) {
	l.t.Helper()
	if err := restore.Run(l.ctx, l.cluster, []*restore.Job{j}, slog.New(slog.DiscardHandler)); err != nil {
		l.t.Fatal(err)
	}
}

// check wants the image itself, not only its overlay, to hold the fold.
func (l *log) check(j *restore.Job, restored int64, rebuilt string) {
	l.t.Helper()
	if got := statetest.Dump(l.t, j.Image); !maps.Equal(got, l.want) {
		l.t.Errorf("rows %v, want %v", got, l.want)
	}
	if p := j.Image.Position(); j.End > 0 && (p.Next != j.End || p.TopicID != j.TopicID) {
		l.t.Errorf("position %v, want offset %d of topic %x", p, j.End, j.TopicID)
	}
	if j.Restored != restored {
		l.t.Errorf("%d records restored, want %d", j.Restored, restored)
	}
	if rebuilt == "" && j.Rebuilt != "" || !strings.Contains(j.Rebuilt, rebuilt) {
		l.t.Errorf("rebuilt because %q, want %q", j.Rebuilt, rebuilt)
	}
}

func TestRestoresOnlyTheTail(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	img := state.NewMemory()
	j := l.job(img)
	l.run(j)
	l.check(j, 0, "")
	l.put("a=1", "b=2", "a=3", "b")
	j = l.job(img)
	l.run(j)
	l.check(j, 4, "")
	l.put("c=4", "a")
	j = l.job(img)
	l.run(j)
	l.check(j, 2, "")
	j = l.job(img)
	l.run(j)
	l.check(j, 0, "")
}

// What does not belong to the log is thrown away, whatever it is.
func TestRebuildsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		spoil  func(l *log, p *state.Position, j *restore.Job)
		reason string
	}{
		{"another topic", func(l *log, p *state.Position, _ *restore.Job) { p.TopicID[3]++ }, "made anew"},
		{"recreated topic", func(l *log, _ *state.Position, j *restore.Job) {
			l.make()
			l.put("z=1", "y=2", "x=3", "w=4", "v=5")
			j.TopicID, j.End = l.id(), l.end()
		}, "made anew"},
		{"log lost its tail", func(l *log, p *state.Position, _ *restore.Job) { p.Next = 100 }, "ends at 3"},
		{"epoch the log does not have", func(_ *log, p *state.Position, _ *restore.Job) { p.LeaderEpoch = 77 }, "epoch 77"},
		{"head deleted", func(l *log, p *state.Position, _ *restore.Job) {
			p.Next = 1
			del := kadm.Offsets{}
			del.Add(kadm.Offset{Topic: "log", At: 2})
			if _, err := kadm.NewClient(l.client).DeleteRecords(l.ctx, del); err != nil {
				l.t.Fatal(err)
			}
			delete(l.want, "a")
			delete(l.want, "b")
		}, "starts at 2"},
		{"older than the tombstones", func(_ *log, p *state.Position, j *restore.Job) {
			p.Next, p.TimeMs, j.Tombstones = 2, time.Now().Add(-2*time.Hour).UnixMilli(), time.Hour
		}, "tombstones"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLog(t)
			l.put("a=1", "b=2", "c=3")
			img := state.NewMemory()
			p := state.Position{TopicID: l.id(), Next: 3, LeaderEpoch: 0, TimeMs: time.Now().UnixMilli()}
			j := l.job(img)
			c.spoil(l, &p, j)
			if err := img.Apply([]state.Row{{Key: []byte("ghost"), Value: []byte("row")}}, p); err != nil {
				t.Fatal(err)
			}
			l.run(j)
			l.check(j, j.Restored, c.reason)
			if j.Restored == 0 {
				t.Error("nothing was restored")
			}
		})
	}
}

// An old store at the end of its log has missed nothing.
func TestOldButCompleteStoreIsKept(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.put("a=1")
	img := state.NewMemory()
	p := state.Position{TopicID: l.id(), Next: 1, TimeMs: 1}
	if err := img.Apply([]state.Row{{Key: []byte("a"), Value: []byte("1")}}, p); err != nil {
		t.Fatal(err)
	}
	j := l.job(img)
	j.Tombstones = time.Hour
	l.run(j)
	l.check(j, 0, "")
}

// An undecided transaction of a former owner lies before the end: the restore
// waits for its outcome and respects it.
func TestWaitsForUndecidedTransactions(t *testing.T) {
	t.Parallel()
	for _, commit := range []bool{true, false} {
		l := newLog(t)
		l.put("a=1")
		p, err := l.cluster.NewProducer(l.ctx, session.ProducerOptions{TransactionalID: "former owner"})
		if err != nil {
			t.Fatal(err)
		}
		r := session.Record{Topic: "log", Key: []byte("a"), Value: []byte("2")}
		var ack session.Ack
		if err := p.Send(l.ctx, &r, &ack); err != nil {
			t.Fatal(err)
		}
		for l.end() < 2 {
			time.Sleep(time.Millisecond)
		}
		j := l.job(state.NewMemory())
		done := make(chan error, 1)
		go func() { done <- restore.Run(l.ctx, l.cluster, []*restore.Job{j}, slog.New(slog.DiscardHandler)) }()
		select {
		case err := <-done:
			t.Fatalf("done before the transaction was: %v", err)
		case <-time.After(150 * time.Millisecond):
		}
		if commit {
			l.want["a"] = "2"
			err = p.Commit(l.ctx, nil, session.Generation{})
		} else {
			err = p.Abort(l.ctx)
		}
		if err == nil {
			err = <-done
		}
		if err != nil {
			t.Fatal(err)
		}
		restored := int64(1)
		if commit {
			restored = 2
		}
		l.check(j, restored, "")
		if err := p.Close(l.ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// KAFKA-16017: a store closed in the middle of its restore had the position of the end.
// A restore that is cut short leaves contents and position that belong together,
// and the next one goes on from there.
func TestPitfall03InterruptedRestoreGoesOn(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	for i := range 50 {
		l.put(fmt.Sprintf("k%d=%d", i%7, i))
	}
	// The end is beyond the log, so that the restore waits when it has read all.
	j := l.job(state.NewMemory())
	j.End += 10
	ctx, cancel := context.WithTimeout(l.ctx, 300*time.Millisecond)
	defer cancel()
	err := restore.Run(ctx, l.cluster, []*restore.Job{j}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("interrupted restore: %v", err)
	}
	if p := j.Image.Position(); p.Next != 50 {
		t.Errorf("position %d, want the 50 that were read", p.Next)
	}
	if got := statetest.Dump(t, j.Image); !maps.Equal(got, l.want) {
		t.Errorf("rows %v, want %v", got, l.want)
	}
	l.put("k0=last")
	j = l.job(j.Image)
	l.run(j)
	l.check(j, 1, "")
}

// A table's own topic is read up to what the group has processed, not further,
// and its records become rows by the table's rule.
func TestSourceTopicAsChangelog(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.put("a=1", "skip=x", "b=2", "b=3")
	j := l.job(state.NewMemory())
	j.End = 3
	j.Row = func(r *session.Record) (key, value []byte, ok bool) {
		return r.Key, append([]byte("row "), r.Value...), string(r.Key) != "skip"
	}
	l.run(j)
	l.want = map[string]string{"a": "row 1", "b": "row 2"}
	l.check(j, 3, "")
}

// A log that was emptied by hand restores to nothing, whatever the store had,
// and the store goes on from its new start.
func TestEmptiedLog(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.put("a=1", "b=2", "c=3")
	del := kadm.Offsets{}
	del.Add(kadm.Offset{Topic: "log", At: 3})
	if _, err := kadm.NewClient(l.client).DeleteRecords(l.ctx, del); err != nil {
		t.Fatal(err)
	}
	clear(l.want)
	old := state.NewMemory()
	if err := old.Apply([]state.Row{{Key: []byte("a"), Value: []byte("1")}}, state.Position{TopicID: l.id(), Next: 1}); err != nil {
		t.Fatal(err)
	}
	fresh, kept := l.job(state.NewMemory()), l.job(old)
	l.run(fresh)
	l.run(kept)
	for _, j := range []*restore.Job{fresh, kept} {
		if got := statetest.Dump(t, j.Image); len(got) > 0 {
			t.Errorf("rows %v of an empty log", got)
		}
	}
	if !strings.Contains(kept.Rebuilt, "starts at 3") {
		t.Errorf("rebuilt because %q", kept.Rebuilt)
	}
	l.put("d=4")
	again := l.job(old)
	l.run(again)
	l.check(again, 1, "")
}
