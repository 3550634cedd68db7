package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/twophase"
	"github.com/millrace/millrace/txn/twophase/postgres"
)

const (
	topic      = "payments"
	partitions = 3
	// wealth is what the wallet begins with, in cents.
	wealth = 1_000_000
)

// prepare makes what is missing: the tables, the wallet, the topic.
func prepare(ctx context.Context, pool *pgxpool.Pool, cluster twophase.Cluster) error {
	_, err := pool.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS wallet (id int PRIMARY KEY, cents bigint NOT NULL);
		CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY, cents bigint NOT NULL);
		INSERT INTO wallet VALUES (1, `+strconv.Itoa(wealth)+`) ON CONFLICT DO NOTHING`)
	if err != nil {
		return fmt.Errorf("tables: %w", err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.Seeds()...), kgo.Dialer(cluster.Dial))
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, topic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	return nil
}

// pay makes payments until there are as many as asked for.
func pay(ctx context.Context, pool *pgxpool.Pool, cluster twophase.Cluster, s settings) error {
	made := 0 // payments of this process that were begun
	options := twophase.Options{TransactionalID: "payments", OnStep: func(step twophase.Step) error {
		if string(step) == s.pauseAt && made == s.pauseOf {
			wait(step)
		}
		return nil
	}}
	store := postgres.New(pool, postgres.Options{})
	open := twophase.OpenStoreDecides[postgres.Querier]
	if s.decides == "log" {
		open = func(ctx context.Context, c twophase.Cluster, _ twophase.Decider[postgres.Querier], o twophase.Options) (*twophase.Committer[postgres.Querier], error) {
			return twophase.OpenLogDecides(ctx, c, twophase.Participant[postgres.Querier](store), o)
		}
	}
	c, err := open(ctx, cluster, store, options)
	if err != nil {
		return err
	}
	defer c.Close()
	// Only now, after recovery, anything else is done in the database: when the log decides, a transaction of an earlier
	// incarnation may hold locks until then.
	if err := prepare(ctx, pool, cluster); err != nil {
		return err
	}
	for {
		var have int
		if err := pool.QueryRow(ctx, "SELECT count(*) FROM orders").Scan(&have); err != nil {
			if err := rest(ctx, err); err != nil {
				return err
			}
			continue
		}
		if have >= s.payments {
			return nil
		}
		made++
		err := c.Do(ctx, func(tx *twophase.Txn[postgres.Querier]) error { return payment(ctx, tx) })
		for errors.Is(err, twophase.ErrUnfinished) && !errors.Is(err, twophase.ErrFenced) {
			if err := rest(ctx, err); err != nil {
				return err
			}
			// Recover finds out what became of it, and finishes it.
			if err = c.Recover(ctx); err != nil && !errors.Is(err, twophase.ErrFenced) {
				err = fmt.Errorf("%w: %w", twophase.ErrUnfinished, err)
			}
		}
		switch {
		case errors.Is(err, twophase.ErrAborted):
			if err := rest(ctx, err); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
}

// payment is the business: it knows nothing of two-phase commit.
func payment(ctx context.Context, tx *twophase.Txn[postgres.Querier]) error {
	var id int
	if err := tx.Store.QueryRow(ctx, "SELECT count(*) + 1 FROM orders").Scan(&id); err != nil {
		return err
	}
	cents := 100 + 7*id%900
	if _, err := tx.Store.Exec(ctx, "INSERT INTO orders VALUES ($1, $2)", id, cents); err != nil {
		return err
	}
	if _, err := tx.Store.Exec(ctx, "UPDATE wallet SET cents = cents - $1 WHERE id = 1", cents); err != nil {
		return err
	}
	return tx.Send(ctx, session.Record{
		Topic: topic, Partition: session.ByKey, Key: []byte(strconv.Itoa(id)), Value: []byte(strconv.Itoa(cents)),
	})
}

// rest says what went wrong and waits a moment.
func rest(ctx context.Context, err error) error {
	fmt.Fprintln(os.Stderr, "two-phase: again after:", err)
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), err)
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

// wait says where the program is and waits for a line; the test kills it meanwhile, or what it talks to.
func wait(step twophase.Step) {
	fmt.Println("at", step)
	bufio.NewScanner(os.Stdin).Scan()
}
