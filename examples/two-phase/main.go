// Command two-phase moves money out of a PostgreSQL table into a topic of the log, each
// payment in one transaction of both: the wallet gets poorer, a row of orders says for
// what, and a record says it to the world. Whatever crashes when, rows and records agree.
//
//	go run ./examples/two-phase -postgres 'host=/var/run/postgresql dbname=test'
//	go run ./examples/two-phase -postgres … -decides log -brokers 127.0.0.1:9092
//
// Without -brokers it runs on a broker of its own, in memory. With -check it compares the
// two row by row and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/txn/twophase"
)

func main() {
	var s settings
	flag.StringVar(&s.postgres, "postgres", "", "how to connect to PostgreSQL (a connection string, or a postgres:// URL)")
	flag.StringVar(&s.brokers, "brokers", "", "brokers, comma-separated; empty runs one in this process")
	flag.StringVar(&s.decides, "decides", "store", "who decides: store or log (log needs max_prepared_transactions above 0)")
	flag.IntVar(&s.payments, "payments", 20, "how many payments there shall be in the end")
	flag.BoolVar(&s.check, "check", false, "compare rows and records, and end")
	flag.StringVar(&s.pauseAt, "pause-at", "", "say so and wait for a line on standard input at this step …")
	flag.IntVar(&s.pauseOf, "pause-of", 0, "… of this payment")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "two-phase:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) (err error) {
	if s.postgres == "" {
		return errors.New("-postgres is missing")
	}
	if s.decides != "store" && s.decides != "log" {
		return fmt.Errorf("-decides is %q, must be store or log", s.decides)
	}
	pool, err := pgxpool.New(ctx, s.postgres)
	if err != nil {
		return err
	}
	defer pool.Close()
	cluster, closeCluster, err := connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeCluster()) }()
	if s.check {
		return check(ctx, pool, cluster)
	}
	if err := pay(ctx, pool, cluster, s); err != nil {
		return err
	}
	return check(ctx, pool, cluster)
}

// connect reaches the brokers, or starts one.
func connect(ctx context.Context, s settings) (twophase.Cluster, func() error, error) {
	if s.brokers != "" {
		return twophase.Brokers(strings.Split(s.brokers, ",")...), func() error { return nil }, nil
	}
	b, err := broker.Start(ctx, broker.Config{
		TransactionTwoPhaseCommit: true,
		Logger:                    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, nil, err
	}
	return b, b.Close, nil
}
