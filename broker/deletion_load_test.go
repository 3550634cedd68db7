package broker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
)

// TestC19TopicsDeletedUnderLoad deletes topics while clients write to them, read them and commit offsets of them. Nothing is left: no
// folder, no open file, no committed offset; and topics made anew under the names begin at 0, with other ids. The reports are
// KAFKA-16168 and krabka 0.5.4's. With MILLRACE_SOAK=1 there are 500 topics.
func TestC19TopicsDeletedUnderLoad(t *testing.T) {
	topics := 20
	if os.Getenv("MILLRACE_SOAK") != "" {
		topics = 500
	}
	dir := t.TempDir()
	b := brokertest.Start(t, brokertest.InFolder(dir))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	adm := admin(t, b)
	var names []string
	for i := range topics {
		names = append(names, fmt.Sprintf("gone-%d", i))
	}
	made, err := adm.CreateTopics(ctx, 2, 1, nil, names...)
	if err != nil {
		t.Fatal(err)
	}
	busy, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	wrote := make(chan struct{}, 1)
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.UnknownTopicRetries(-1), kgo.MetadataMinAge(10*time.Millisecond))
	reader := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ConsumeTopics(names...), kgo.MetadataMinAge(10*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	work.Go(func() {
		for n := 0; busy.Err() == nil; n++ { // of a topic that goes the error is no matter, of the others there is none
			if cl.ProduceSync(busy, &kgo.Record{Topic: names[n%topics], Value: []byte("v")}).FirstErr() == nil && n == topics {
				wrote <- struct{}{}
			}
		}
	})
	work.Go(func() {
		for busy.Err() == nil {
			reader.PollFetches(busy)
		}
	})
	<-wrote
	for i, name := range names {
		var commit kadm.Offsets
		commit.AddOffset(name, 0, 1, -1)
		if err := adm.CommitAllOffsets(ctx, "g", commit); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			reader.PurgeTopicsFromClient(name)
		}
		if _, err := adm.DeleteTopic(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	work.Wait()
	reader.Close()
	if left := folders(t, dir, "gone-"); len(left) > 0 {
		t.Errorf("folders are left: %v", left)
	}
	if left := openUnder(t, filepath.Join(dir, "gone-")); len(left) > 0 {
		t.Errorf("files are open: %v", left)
	}
	for _, f := range b.Partitions() {
		if strings.HasPrefix(f.Topic, "gone-") {
			t.Errorf("%s-%d has figures", f.Topic, f.Partition)
		}
	}
	again, err := adm.CreateTopics(ctx, 2, 1, nil, names...)
	if err != nil {
		t.Fatal(err)
	}
	offsets, err := adm.FetchOffsets(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	fresh := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for _, name := range names {
		if again[name].ID == made[name].ID {
			t.Errorf("%s has the id that it had", name)
		}
		if o, ok := offsets.Lookup(name, 0); ok && o.At >= 0 {
			t.Errorf("%s has the committed offset %d of the old one", name, o.At)
		}
		r := &kgo.Record{Topic: name, Value: []byte("v")}
		if err := fresh.ProduceSync(ctx, r).FirstErr(); err != nil || r.Offset != 0 {
			t.Errorf("%s: the first record is at %d, %v", name, r.Offset, err)
		}
	}
}

// openUnder lists what this process has open whose path begins so; on Linux, elsewhere none.
func openUnder(t *testing.T, prefix string) (open []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		// One that is closed meanwhile is no matter.
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, prefix) {
			open = append(open, to)
		}
	}
	return open
}
