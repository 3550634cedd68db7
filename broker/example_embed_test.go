package broker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
)

// embed is the part that the guide shows.
func embed(ctx context.Context, dir string) error {
	b, err := broker.Start(ctx, broker.Config{
		Dir:    dir,           // without it: in memory, gone at the end
		Listen: "127.0.0.1:0", // without it: reached from this process only
	})
	if err != nil {
		return err
	}
	defer b.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("tea")}).FirstErr()
}

// A broker with a data folder and a port, and a client in the same process.
func ExampleStart_durable() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	dir, err := os.MkdirTemp("", "broker-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for range 2 { // the second time it finds what the first has left
		if err := embed(context.Background(), dir); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("acknowledged twice")
	// Output: acknowledged twice
}

// Only one process at a time has a data folder.
func ExampleStart_locked() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "broker-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	config := broker.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}
	first, err := broker.Start(ctx, config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()

	_, err = broker.Start(ctx, config)
	switch {
	case errors.Is(err, broker.ErrLocked):
		fmt.Println("another process has the folder")
	case errors.Is(err, broker.ErrNewerFormat):
		fmt.Println("a newer release wrote it")
	case err != nil:
		fmt.Println(err) // names the folder, file or address
	}
	// Output: another process has the folder
}
