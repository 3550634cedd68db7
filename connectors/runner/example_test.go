package runner_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/file"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
)

// A file goes into a topic, and the topic into a table, each record once. The
// cluster is an embedded broker here; connectors.Brokers("host:9092") is another.
func Example() {
	if err := pour(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// exactly-once
	// AA1 12
	// AA2 -3
}

func pour() error {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "flights.csv"), filepath.Join(dir, "flights.db")
	if err := os.WriteFile(in, []byte("flight,delay\nAA1,12\nAA2,-3\n"), 0o600); err != nil {
		return err
	}
	ctx := context.Background()
	b, err := broker.Start(ctx, broker.Config{})
	if err != nil {
		return err
	}
	defer b.Close()
	if err := topic(ctx, b, "flights"); err != nil {
		return err
	}

	src, err := file.New(file.Config{Name: "flights", Paths: []string{in}, Topic: "flights", Key: file.Field("flight")})
	if err != nil {
		return err
	}
	source, err := runner.NewSource(runner.SourceOptions{Cluster: b, Source: src})
	if err != nil {
		return err
	}
	if err := source.Run(ctx); err != nil { // ends with the file
		return err
	}

	sink, err := runner.NewSink(runner.SinkOptions{
		Cluster: b, Topics: []string{"flights"}, Value: connectors.JSON,
		New: func(int) (connectors.TxSink, error) {
			return sqlite.New(sqlite.Config{
				Name: "flights", Path: out, Table: "flights", Mode: sqlite.Upsert, Keys: []string{"flight"},
				Columns: []sqlite.Column{{Name: "flight", From: "key"}, {Name: "delay"}},
			})
		},
	})
	if err != nil {
		return err
	}
	fmt.Println(sink.Guarantee().Guarantee)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- sink.Run(ctx) }()
	if _, err := sink.Await(ctx, func(st runner.Status) bool { return st.CaughtUp(1) }); err != nil {
		return err
	}
	stop()
	if err := <-done; err != nil {
		return err
	}
	return show(out)
}

func topic(ctx context.Context, c connectors.Cluster, name string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial))
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreateTopic(ctx, 1, 1, nil, name)
	return err
}

func show(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query("SELECT flight, delay FROM flights ORDER BY flight")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var flight, delay string
		if err := rows.Scan(&flight, &delay); err != nil {
			return err
		}
		fmt.Println(flight, delay)
	}
	return rows.Err()
}
