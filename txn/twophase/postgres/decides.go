package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/txn/twophase"
)

// retryPause is between two tries of what PostgreSQL asks to try again.
const retryPause = 20 * time.Millisecond

// Claim takes the row over. It waits for the row's lock, so a transaction of an earlier owner that is on its way has
// committed or failed when Claim returns.
func (s *Store) Claim(ctx context.Context, id, owner string) (twophase.PreparedState, error) {
	for {
		state, err := s.claim(ctx, id, owner)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "40001" && pg.Code != "40P01" {
			return state, err
		}
		if err := pause(ctx, err); err != nil {
			return state, err
		}
	}
}

func (s *Store) claim(ctx context.Context, id, owner string) (state twophase.PreparedState, err error) {
	if err := s.createTable(ctx); err != nil {
		return state, err
	}
	err = s.within(ctx, func(_ *pgxpool.Conn, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+s.table+" (id, owner, state) VALUES ($1, '', '') ON CONFLICT (id) DO NOTHING", id)
		if err != nil {
			return fmt.Errorf("postgres: claim %s: %w", id, err)
		}
		var before, text string
		if err := tx.QueryRow(ctx, "SELECT owner, state FROM "+s.table+" WHERE id = $1 FOR UPDATE", id).Scan(&before, &text); err != nil {
			return fmt.Errorf("postgres: claim %s: %w", id, err)
		}
		if twophase.Older(owner, before) {
			return fmt.Errorf("%w: %s has been claimed by %s, this is %s", twophase.ErrFenced, id, before, owner)
		}
		if state, err = twophase.ParsePreparedState(text); err != nil {
			return fmt.Errorf("postgres: row of %s in %s: %w", id, s.table, err)
		}
		if _, err := tx.Exec(ctx, "UPDATE "+s.table+" SET owner = $2, claimed_at = now() WHERE id = $1", id, owner); err != nil {
			return fmt.Errorf("postgres: claim %s: %w", id, err)
		}
		if err := tx.Commit(ctx); err != nil {
			return fmt.Errorf("postgres: claim %s: %w", id, err)
		}
		return nil
	})
	return state, err
}

// createTable makes the table. IF NOT EXISTS can still collide with another session that makes it; the second try finds it.
func (s *Store) createTable(ctx context.Context) error {
	sql := "CREATE TABLE IF NOT EXISTS " + s.table + ` (
		id text PRIMARY KEY,
		owner text NOT NULL,
		state text NOT NULL,
		claimed_at timestamptz NOT NULL DEFAULT now(),
		committed_at timestamptz
	)`
	_, err := s.pool.Exec(ctx, sql)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "23505" || pg.Code == "42P07") {
		_, err = s.pool.Exec(ctx, sql)
	}
	if err != nil {
		return fmt.Errorf("postgres: create table %s: %w", s.table, err)
	}
	return nil
}

// Commit commits what work wrote together with the row.
func (s *Store) Commit(ctx context.Context, id, owner string, work func(Querier) (twophase.PreparedState, error)) error {
	return s.within(ctx, func(_ *pgxpool.Conn, tx pgx.Tx) error {
		state, err := work(inside{tx})
		if err != nil {
			return err
		}
		// The row is written in either case: an owner that is only read fences nobody.
		tag, err := tx.Exec(ctx, "UPDATE "+s.table+` SET state = CASE WHEN $3 = '' THEN state ELSE $3 END, committed_at = now()
			WHERE id = $1 AND owner = $2`, id, owner, state.String())
		if err != nil {
			return fmt.Errorf("postgres: state of %s: %w", id, err)
		}
		if tag.RowsAffected() != 1 {
			return fmt.Errorf("%w: the row of %s has another owner than %s", twophase.ErrFenced, id, owner)
		}
		if err := tx.Commit(ctx); err != nil {
			return outcome("commit", err)
		}
		return nil
	})
}

// pause waits before the next try.
func pause(ctx context.Context, last error) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w, last: %w", ctx.Err(), last)
	case <-time.After(retryPause):
		return nil
	}
}
