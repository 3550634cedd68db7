package brokertest_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
)

// What the guide shows of a test with a node.
func TestPowerCutAsInTheGuide(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	node := brokertest.StartNode(t) // a real broker, on a disk in memory
	client, err := kgo.NewClient(kgo.SeedBrokers(node.Seeds()...), kgo.Dialer(node.Dial), kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	order := &kgo.Record{Topic: "orders", Value: []byte("tea")}
	if err := client.ProduceSync(ctx, order).FirstErr(); err != nil {
		t.Fatal(err)
	}

	node.Crash(t, 42) // a power cut: what was synced is left, and of the rest what the seed chooses

	next := &kgo.Record{Topic: "orders", Value: []byte("cake")}
	if err := client.ProduceSync(ctx, next).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if next.Offset != order.Offset+1 {
		t.Errorf("the record behind offset %d has offset %d", order.Offset, next.Offset)
	}
}
