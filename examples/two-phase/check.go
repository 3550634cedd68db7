package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/twophase"
)

// check compares every row with every record, and counts the money.
func check(ctx context.Context, pool *pgxpool.Pool, cluster twophase.Cluster) error {
	rows, wallet, err := readTable(ctx, pool)
	if err != nil {
		return err
	}
	records, err := readTopic(ctx, cluster)
	if err != nil {
		return err
	}
	var wrong []error
	money := wallet
	for id := 1; id <= len(rows); id++ {
		if _, ok := rows[id]; !ok {
			wrong = append(wrong, fmt.Errorf("there is no order %d of %d", id, len(rows)))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		if got := records[id]; !slices.Equal(got, []int{rows[id]}) {
			wrong = append(wrong, fmt.Errorf("order %d over %d cents: records over %v", id, rows[id], got))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(records)) {
		if _, ok := rows[id]; !ok {
			wrong = append(wrong, fmt.Errorf("a record of order %d over %v cents, and no row", id, records[id]))
		}
		for _, cents := range records[id] {
			money += cents
		}
	}
	if money != wealth {
		wrong = append(wrong, fmt.Errorf("wallet and records have %d cents, there were %d", money, wealth))
	}
	var prepared int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()").Scan(&prepared); err != nil {
		return err
	}
	if prepared > 0 {
		wrong = append(wrong, fmt.Errorf("%d transactions stay prepared in PostgreSQL", prepared))
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	fmt.Printf("%d orders, a record for each, no other record, %d cents in all\n", len(rows), money)
	return nil
}

func readTable(ctx context.Context, pool *pgxpool.Pool) (orders map[int]int, wallet int, err error) {
	rows, err := pool.Query(ctx, "SELECT id, cents FROM orders")
	if err != nil {
		return nil, 0, err
	}
	orders = map[int]int{}
	var id, cents int
	if _, err := pgx.ForEachRow(rows, []any{&id, &cents}, func() error { orders[id] = cents; return nil }); err != nil {
		return nil, 0, err
	}
	err = pool.QueryRow(ctx, "SELECT cents FROM wallet").Scan(&wallet)
	return orders, wallet, err
}

// readTopic reads what is committed, up to the end of each partition: an open transaction in between is waited for.
func readTopic(ctx context.Context, c twophase.Cluster) (map[int][]int, error) {
	cluster, err := session.Connect(ctx, session.ClusterOptions{Seeds: c.Seeds(), Dial: c.Dial})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	var parts []session.TopicPartition
	for p := range int32(partitions) {
		parts = append(parts, session.TopicPartition{Topic: topic, Partition: p})
	}
	ends, err := cluster.List(ctx, session.End, parts)
	if err != nil {
		return nil, err
	}
	reader := cluster.NewReader(session.ReaderOptions{})
	defer reader.Close()
	records := map[int][]int{}
	for _, part := range parts {
		feed := reader.Add(part, 0)
		for feed.Position() < ends[part] {
			r, ok := feed.Head()
			if !ok && feed.Position() < ends[part] {
				if err := feed.Err(); err != nil {
					return nil, err
				}
				select {
				case <-ctx.Done():
					return nil, fmt.Errorf("%s-%d is read up to offset %d of %d: %w", topic, part.Partition, feed.Position(), ends[part], ctx.Err())
				case <-reader.Arrived():
				}
			}
			if !ok {
				continue
			}
			id, err1 := strconv.Atoi(string(r.Key))
			cents, err2 := strconv.Atoi(string(r.Value))
			if err := errors.Join(err1, err2); err != nil {
				return nil, err
			}
			records[id] = append(records[id], cents)
			feed.Pop()
		}
	}
	return records, nil
}
