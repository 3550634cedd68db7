package sqlite

import (
	"context"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/millrace/millrace/connectors"
)

// primary returns the primary result code of an error of SQLite, -1 for others.
func primary(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff
	}
	return -1
}

// isReject reports whether a statement failed because of the values in it, so
// that the transaction is intact and other rows may still go in.
func isReject(err error) bool {
	switch primary(err) {
	case code.SQLITE_CONSTRAINT, code.SQLITE_MISMATCH, code.SQLITE_TOOBIG, code.SQLITE_RANGE:
		return true
	}
	return false
}

// classify puts an error from before the commit into the contract's classes:
// the transaction is rolled back, so nothing was applied.
func classify(what string, err error) error {
	if err == nil {
		return nil
	}
	class := connectors.ErrRetry
	switch primary(err) {
	case code.SQLITE_READONLY, code.SQLITE_PERM, code.SQLITE_AUTH, code.SQLITE_CANTOPEN,
		code.SQLITE_NOTADB, code.SQLITE_CORRUPT, code.SQLITE_ERROR:
		class = connectors.ErrConfig // missing table or column, no privilege, no database
	}
	if errors.Is(err, connectors.ErrFenced) || errors.Is(err, connectors.ErrStale) ||
		errors.Is(err, connectors.ErrConfig) || errors.Is(err, connectors.ErrRetry) {
		return fmt.Errorf("sqlite: %s: %w", what, err)
	}
	return fmt.Errorf("sqlite: %s: %w: %w", what, class, err)
}

// classifyCommit does the same for the answer of COMMIT. Only a busy database
// is known not to have committed; an I/O error or the end of the context may
// have come after the commit record was written.
func classifyCommit(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	class := connectors.ErrUnknownOutcome
	if c := primary(err); ctx.Err() == nil && (c == code.SQLITE_BUSY || c == code.SQLITE_LOCKED) {
		class = connectors.ErrRetry
	}
	return fmt.Errorf("sqlite: commit: %w: %w", class, err)
}
