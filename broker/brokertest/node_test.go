package brokertest_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
)

// What was acknowledged is there after a power cut.
func TestNodeKeepsWhatItAcknowledged(t *testing.T) {
	ctx := context.Background()
	node := brokertest.StartNode(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Seeds()...), kgo.Dialer(node.Dial), kgo.AllowAutoTopicCreation(),
		kgo.DefaultProduceTopic("t"), kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var want []string
	for seed := range uint64(10) {
		v := string(rune('a' + seed))
		if err := client.ProduceSync(ctx, kgo.StringRecord(v)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		want = append(want, v)
		if seed%3 == 2 {
			node.Restart(t)
		} else {
			node.Crash(t, seed)
		}
	}
	for i := 0; i < len(want); {
		fetches := client.PollFetches(ctx)
		for r := range fetches.RecordsAll() {
			if string(r.Value) != want[i] {
				t.Fatalf("record %d is %s, want %s", i, r.Value, want[i])
			}
			i++
		}
	}
}
