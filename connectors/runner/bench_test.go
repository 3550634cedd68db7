package runner_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/file"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
)

// BenchmarkFileToSQLite moves b.N records from a file through an embedded
// broker in memory into a table on disk, and reports both halves.
func BenchmarkFileToSQLite(b *testing.B) {
	broker := brokertest.Start(b)
	dir := b.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.db")
	f, err := os.Create(in)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range b.N {
		fmt.Fprintf(w, `{"id":%d,"date":"2001/01/01 00:47","delay":66,"distance":1750,"origin":"DTW","destination":"LAS"}`+"\n", i)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	createTopic(b, broker, "orders", 3)
	src, err := file.New(file.Config{
		Name: "in", Paths: []string{in}, Topic: "orders", Key: file.Field("id"), Time: file.TimeField("date", "2006/01/02 15:04", nil),
	})
	if err != nil {
		b.Fatal(err)
	}
	source, err := runner.NewSource(runner.SourceOptions{Cluster: broker, Source: src})
	if err != nil {
		b.Fatal(err)
	}
	sink, err := runner.NewSink(runner.SinkOptions{
		Cluster: broker, Topics: []string{"orders"}, Value: connectors.JSON,
		New: func(int) (connectors.TxSink, error) { return sqlite.New(sqliteConfig(out)) },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := source.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	read := b.Elapsed()
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- sink.Run(ctx) }()
	if err := storedAll(ctx, broker, sink); err != nil {
		b.Fatal(err)
	}
	stored := b.Elapsed() - read
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/read.Seconds(), "read/s")
	b.ReportMetric(float64(b.N)/stored.Seconds(), "stored/s")
}
