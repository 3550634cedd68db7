package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/txn/twophase"
)

// Querier is an open transaction to read and write with.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// inside hides that a transaction can be committed.
type inside struct{ Querier }

// Options of a store. The zero value works.
type Options struct {
	// Table keeps the rows when PostgreSQL decides; it may have a schema before a dot. It is made when it is missing.
	// "millrace_two_phase" by default.
	Table string
	// Isolation of the transactions; the database's default if empty.
	Isolation pgx.TxIsoLevel
}

// Store is both a [twophase.Decider] and a [twophase.Participant]. It is safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	o     Options
	table string // quoted
}

var (
	_ twophase.Decider[Querier]     = (*Store)(nil)
	_ twophase.Participant[Querier] = (*Store)(nil)
)

// New makes a store on a pool, which stays the caller's. The pool must not go through a pooler that gives each statement
// another session.
func New(pool *pgxpool.Pool, o Options) *Store {
	if o.Table == "" {
		o.Table = "millrace_two_phase"
	}
	return &Store{pool: pool, o: o, table: pgx.Identifier(strings.SplitN(o.Table, ".", 2)).Sanitize()}
}

// SQLSTATE codes.
const (
	undefinedObject   = "42704" // COMMIT PREPARED of what is not there
	notInRightState   = "55000" // it is being finished by somebody else, or prepared transactions are switched off
	completionUnknown = "40003"
)

// outcome says what an error of the statement that ends a transaction means: that PostgreSQL has refused, or that nobody
// knows, because the answer never came or the server went down. pgconn.SafeToRetry is not asked: pgx 5.12 says "conn
// closed", safe to retry, of a COMMIT that the server was in the middle of when it was killed.
func outcome(what string, err error) error {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code != completionUnknown && !strings.HasPrefix(pg.Code, "57P") && !strings.HasPrefix(pg.Code, "08"):
		return fmt.Errorf("postgres: %s: %w", what, err)
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("postgres: %s: %w", what, err)
	}
	return fmt.Errorf("%w: postgres: %s: %w", twophase.ErrUnknownOutcome, what, err)
}

// within runs f in a transaction. When f fails, or panics, the transaction is rolled back, or its session is closed, which
// comes to the same.
func (s *Store) within(ctx context.Context, f func(*pgxpool.Conn, pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("postgres: connect: %w", err)
	}
	defer conn.Release()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: s.o.Isolation})
	if err != nil {
		return fmt.Errorf("postgres: begin: %w", err)
	}
	done := false
	defer func() {
		if !done {
			rollBack(conn)
		}
	}()
	err = f(conn, tx)
	done = err == nil
	return err
}

// rollbackTimeout bounds what is done for a transaction that is over.
const rollbackTimeout = 5 * time.Second

// rollBack ends what the session has open; a session that can not be asked to is closed, and PostgreSQL rolls back.
func rollBack(conn *pgxpool.Conn) {
	c := conn.Conn()
	if c.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
	defer cancel()
	if c.PgConn().TxStatus() == 'I' {
		return
	}
	if _, err := c.Exec(ctx, "ROLLBACK"); err != nil {
		// The error of closing says nothing that matters: the session is gone either way.
		_ = c.Close(ctx)
	}
}
