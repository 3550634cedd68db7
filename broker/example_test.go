package broker_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
)

// A broker in this process, and a client that reaches it without a socket.
func ExampleStart() {
	ctx := context.Background()
	b, err := broker.Start(ctx, broker.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	client, err := kgo.NewClient(
		kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial),
		kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("greetings"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	record := &kgo.Record{Topic: "greetings", Value: []byte("hello")}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		fmt.Println(err)
		return
	}
	for r := range client.PollFetches(ctx).RecordsAll() {
		fmt.Printf("%s at offset %d\n", r.Value, r.Offset)
	}
	// Output: hello at offset 0
}
