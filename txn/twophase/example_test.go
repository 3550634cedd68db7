package twophase_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/twophase"
)

// A row in a store and a record in the log, both or neither. The store of this example keeps its rows in memory; package
// postgres has the real one.
func ExampleOpenStoreDecides() {
	err := orders(context.Background(), newMem())
	fmt.Println(err)

	// Output:
	// order 0: <nil>
	// order 1: sold out
	// order 2: <nil>
	// rows 0 and 2: true
	// <nil>
}

func orders(ctx context.Context, store *mem) error {
	b, err := broker.Start(ctx, broker.Config{TransactionTwoPhaseCommit: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	defer b.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 1, 1, nil, "orders"); err != nil {
		return err
	}

	c, err := twophase.OpenStoreDecides(ctx, b, store, twophase.Options{TransactionalID: "shop"})
	if err != nil {
		return err
	}
	defer c.Close()
	soldOut := errors.New("sold out")
	for n := range 3 {
		err := c.Do(ctx, func(tx *twophase.Txn[*pending]) error {
			tx.Store.Insert(n)
			if err := tx.Send(ctx, session.Record{Topic: "orders", Partition: session.ByKey, Key: fmt.Append(nil, n)}); err != nil {
				return err
			}
			if n == 1 {
				return soldOut
			}
			return nil
		})
		if errors.Is(err, twophase.ErrAborted) && errors.Is(err, soldOut) {
			err = soldOut // the row and the record are gone; the next transaction goes on
		}
		fmt.Printf("order %d: %v\n", n, err)
	}
	fmt.Println("rows 0 and 2:", fmt.Sprint(store.has()) == "[0 2]")
	return nil
}
