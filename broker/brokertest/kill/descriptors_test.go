package kill

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestS22ManyPartitionsFewDescriptors: a server with several times as many partitions as it may have files open is no worse for it.
// While it has none left it refuses for the moment, and clients try again; after a kill it starts, and has every record. The report
// is krabka 1.0's. With MILLRACE_SOAK=1 it has 5,000 partitions.
func TestS22ManyPartitionsFewDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits are set by a shell's ulimit")
	}
	topics, files := 4, 300
	if os.Getenv("MILLRACE_SOAK") != "" {
		topics, files = 50, 1024
	}
	const partitions = 100
	s := &server{t: t, dir: t.TempDir(), addr: "127.0.0.1:0", files: files}
	s.start()
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	for i := range topics {
		name := fmt.Sprintf("many-%d", i)
		for { // until there are descriptors again
			if _, err = adm.CreateTopic(ctx, partitions, 1, nil, name); err == nil {
				break
			}
			if known, lerr := adm.ListTopics(ctx, name); lerr == nil && known.Has(name) && known[name].Err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var records []*kgo.Record
		for p := range int32(partitions) {
			records = append(records, &kgo.Record{Topic: name, Partition: p, Value: fmt.Appendf(nil, "%d/%d", i, p)})
		}
		if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, s.stderr.String())
		}
	}
	s.kill()
	s.start()
	for i := range topics {
		name := fmt.Sprintf("many-%d", i)
		seen := map[string]bool{}
		for _, r := range readAll(t, s.addr, name) {
			if want := fmt.Sprintf("%d/%d", i, r.Partition); string(r.Value) != want || seen[want] {
				t.Errorf("%s-%d: record %q, seen before: %v", name, r.Partition, r.Value, seen[want])
			}
			seen[string(r.Value)] = true
		}
		if len(seen) != partitions {
			t.Errorf("%s: records in %d of %d partitions", name, len(seen), partitions)
		}
	}
}
