package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxGID is PostgreSQL's limit.
const maxGID = 200

// Prepare prepares what work wrote.
func (s *Store) Prepare(ctx context.Context, gid string, work func(Querier) error) error {
	if len(gid) >= maxGID {
		return fmt.Errorf("postgres: the name of the transaction has %d bytes, at most %d are possible: %s", len(gid), maxGID-1, gid)
	}
	return s.within(ctx, func(conn *pgxpool.Conn, tx pgx.Tx) error {
		if err := work(inside{tx}); err != nil {
			return err
		}
		tag, err := conn.Exec(ctx, "PREPARE TRANSACTION "+quote(gid), pgx.QueryExecModeSimpleProtocol)
		var pg *pgconn.PgError
		switch {
		case errors.As(err, &pg) && pg.Code == notInRightState:
			return fmt.Errorf("postgres: prepare: %w (max_prepared_transactions must be above 0)", err)
		case err != nil:
			return outcome("prepare", err)
		case tag.String() != "PREPARE TRANSACTION":
			// A statement of the transaction has failed; PostgreSQL rolls back and says so in the tag alone.
			return fmt.Errorf("postgres: prepare: the transaction was rolled back (%s), a statement in it has failed", tag)
		}
		return nil
	})
}

// Finish commits or rolls back a prepared transaction, and waits while another session is at it.
func (s *Store) Finish(ctx context.Context, gid string, commit bool) error {
	sql := "ROLLBACK PREPARED " + quote(gid)
	if commit {
		sql = "COMMIT PREPARED " + quote(gid)
	}
	for {
		_, err := s.pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		var pg *pgconn.PgError
		switch {
		case err == nil || errors.As(err, &pg) && pg.Code == undefinedObject:
			return nil
		case pg == nil && pgconn.SafeToRetry(err), pg != nil && pg.Code == notInRightState:
			if err := pause(ctx, err); err != nil {
				return err
			}
		default:
			return fmt.Errorf("postgres: %s: %w", sql, err)
		}
	}
}

// Prepared lists what is prepared in this database.
func (s *Store) Prepared(ctx context.Context, prefix string) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT gid FROM pg_prepared_xacts
		WHERE database = current_database() AND starts_with(gid, $1) ORDER BY prepared, gid`, prefix)
	if err != nil {
		return nil, fmt.Errorf("postgres: prepared transactions: %w", err)
	}
	gids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("postgres: prepared transactions: %w", err)
	}
	return gids, nil
}

// quote makes a string literal, for statements that take no parameter.
func quote(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
