package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/txn/twophase"
	"github.com/millrace/millrace/txn/twophase/postgres"
	"github.com/millrace/millrace/txn/twophase/postgres/pgtest"
)

func pool(t *testing.T, pg *pgtest.Server) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), pg.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func exec(t *testing.T, p *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := p.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t *testing.T, p *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	if err := p.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func state(t *testing.T, s string) twophase.PreparedState {
	t.Helper()
	p, err := twophase.ParsePreparedState(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var errWork = errors.New("the work failed")

// TestStore is one server for all of it; the parts use tables and ids of their own.
func TestStore(t *testing.T) {
	pg := pgtest.Start(t)
	p := pool(t, pg)
	exec(t, p, "CREATE TABLE rows (who text, n int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
	t.Run("the owner decides", func(t *testing.T) { ownerDecides(t, p) })
	t.Run("a claim waits for the transaction on its way", func(t *testing.T) { claimWaits(t, p) })
	t.Run("prepared transactions", func(t *testing.T) { preparedTransactions(t, p) })
	t.Run("they survive a crash", func(t *testing.T) { preparedSurvives(t, pg, p) })
	t.Run("an unknown outcome", func(t *testing.T) { unknownOutcome(t, pg, p) })
}

func insert(ctx context.Context, q postgres.Querier, who string, n int) error {
	_, err := q.Exec(ctx, "INSERT INTO rows VALUES ($1, $2)", who, n)
	return err
}

func ownerDecides(t *testing.T, p *pgxpool.Pool) {
	ctx := t.Context()
	exec(t, p, "CREATE SCHEMA apart")
	s := postgres.New(p, postgres.Options{Table: "apart.two_phase", Isolation: pgx.RepeatableRead})
	commit := func(owner string, st twophase.PreparedState, fail error, n int) error {
		return s.Commit(ctx, "a", owner, func(q postgres.Querier) (twophase.PreparedState, error) {
			return st, errors.Join(insert(ctx, q, "owner", n), fail)
		})
	}
	claim := func(owner, want string) {
		t.Helper()
		if last, err := s.Claim(ctx, "a", owner); err != nil || last != state(t, want) {
			t.Fatalf("claim by %s: %v, %v; want %q", owner, last, err, want)
		}
	}
	claim("7:0", "")
	if err := commit("7:0", state(t, "7:1"), nil, 1); err != nil {
		t.Fatal(err)
	}
	if err := commit("7:0", state(t, "7:2"), errWork, 2); !errors.Is(err, errWork) {
		t.Fatalf("failed work: %v", err)
	}
	if err := commit("7:0", state(t, "7:2"), nil, 1); err == nil || errors.Is(err, twophase.ErrUnknownOutcome) || errors.Is(err, twophase.ErrFenced) {
		t.Fatalf("a constraint that fails the commit itself: %v", err)
	}
	if err := commit("7:0", twophase.PreparedState{}, nil, 3); err != nil {
		t.Fatal(err)
	}
	claim("7:4", "7:1") // a commit without a part in the log leaves the state
	if err := commit("7:0", state(t, "7:9"), nil, 4); !errors.Is(err, twophase.ErrFenced) {
		t.Fatalf("commit of the owner before: %v", err)
	}
	if err := commit("7:0", twophase.PreparedState{}, nil, 5); !errors.Is(err, twophase.ErrFenced) {
		t.Fatalf("commit of the owner before, without a part in the log: %v", err)
	}
	if _, err := s.Claim(ctx, "a", "7:3"); !errors.Is(err, twophase.ErrFenced) {
		t.Fatalf("claim that comes late: %v", err)
	}
	claim("7:4", "7:1")
	claim("9:0", "7:1") // another producer id: newer or older, nobody can tell
	if n := count(t, p, "SELECT count(*) FROM rows WHERE who = 'owner' AND n IN (1, 3)"); n != 2 {
		t.Errorf("%d rows of those committed", n)
	}
	if n := count(t, p, "SELECT count(*) FROM rows"); n != 2 {
		t.Errorf("%d rows in all", n)
	}
}

// claimWaits: while a transaction holds the row, a claim waits; then it sees what was committed.
func claimWaits(t *testing.T, p *pgxpool.Pool) {
	ctx := t.Context()
	s := postgres.New(p, postgres.Options{})
	if _, err := s.Claim(ctx, "b", "1:0"); err != nil {
		t.Fatal(err)
	}
	tx, err := p.Begin(ctx) // stands for the commit of 1:0 between its update and its commit
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // after the commit below it says that it is closed
	if _, err := tx.Exec(ctx, "UPDATE millrace_two_phase SET state = '1:5' WHERE id = 'b' AND owner = '1:0'"); err != nil {
		t.Fatal(err)
	}
	type claimed struct {
		last twophase.PreparedState
		err  error
	}
	done := make(chan claimed, 1)
	go func() {
		last, err := s.Claim(ctx, "b", "1:6")
		done <- claimed{last, err}
	}()
	for count(t, p, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == 0 {
		select {
		case c := <-done:
			t.Fatalf("the claim did not wait: %v, %v", c.last, c.err)
		default:
		}
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if c := <-done; c.err != nil || c.last != state(t, "1:5") {
		t.Fatalf("claim: %v, %v", c.last, c.err)
	}
}

func preparedTransactions(t *testing.T, p *pgxpool.Pool) {
	ctx := t.Context()
	s := postgres.New(p, postgres.Options{})
	prepare := func(gid string, n int, fail error) error {
		return s.Prepare(ctx, gid, func(q postgres.Querier) error { return errors.Join(insert(ctx, q, "prepared", n), fail) })
	}
	for i, gid := range []string{"p/1", `p/it's\odd`, "other"} {
		if err := prepare(gid, 100+i, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := prepare("p/bad", 110, errWork); !errors.Is(err, errWork) {
		t.Fatalf("failed work: %v", err)
	}
	err := s.Prepare(ctx, "p/swallowed", func(q postgres.Querier) error {
		_, _ = q.Exec(ctx, "SELECT 1/0") // a program that does not look
		return nil
	})
	if err == nil || errors.Is(err, twophase.ErrUnknownOutcome) || !strings.Contains(err.Error(), "rolled back") {
		t.Fatalf("work whose statement failed: %v", err)
	}
	if err := prepare(strings.Repeat("x", 200), 111, nil); err == nil || !strings.Contains(err.Error(), "199") {
		t.Fatalf("a name that is too long: %v", err)
	}
	if err := prepare("p/1", 112, nil); err == nil || errors.Is(err, twophase.ErrUnknownOutcome) {
		t.Fatalf("a name twice: %v", err)
	}
	gids, err := s.Prepared(ctx, "p/")
	if err != nil || len(gids) != 2 || gids[0] != "p/1" || gids[1] != `p/it's\odd` {
		t.Fatalf("prepared: %q, %v", gids, err)
	}
	for range 2 { // the second time there is nothing to do
		if err := errors.Join(s.Finish(ctx, "p/1", true), s.Finish(ctx, `p/it's\odd`, false), s.Finish(ctx, "other", true)); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, p, "SELECT count(*) FROM rows WHERE who = 'prepared' AND n IN (100, 102)"); n != 2 {
		t.Errorf("%d rows of those committed", n)
	}
	if n := count(t, p, "SELECT count(*) FROM rows WHERE who = 'prepared'"); n != 2 {
		t.Errorf("%d rows in all", n)
	}
}

func preparedSurvives(t *testing.T, pg *pgtest.Server, p *pgxpool.Pool) {
	ctx := t.Context()
	s := postgres.New(p, postgres.Options{})
	if err := s.Prepare(ctx, "crash/1", func(q postgres.Querier) error { return insert(ctx, q, "crash", 200) }); err != nil {
		t.Fatal(err)
	}
	pg.Kill()
	pg.Start()
	p.Reset()
	gids, err := s.Prepared(ctx, "crash/")
	if err != nil || len(gids) != 1 {
		t.Fatalf("after the crash: %q, %v", gids, err)
	}
	if err := s.Finish(ctx, "crash/1", true); err != nil {
		t.Fatal(err)
	}
	if n := count(t, p, "SELECT count(*) FROM rows WHERE who = 'crash'"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// unknownOutcome: the server goes while the last statement of a transaction is on its way. Nobody can say then what it did,
// and nobody does.
func unknownOutcome(t *testing.T, pg *pgtest.Server, p *pgxpool.Pool) {
	ctx := t.Context()
	s := postgres.New(p, postgres.Options{})
	if _, err := s.Claim(ctx, "c", "1:0"); err != nil {
		t.Fatal(err)
	}
	// A deferred trigger runs in the commit itself, and waits for a lock that the test holds.
	exec(t, p, `CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$`)
	exec(t, p, "CREATE CONSTRAINT TRIGGER w AFTER INSERT ON rows DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION waits()")
	holder, err := p.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Release()
	if _, err := holder.Exec(ctx, "SELECT pg_advisory_lock(1)"); err != nil {
		t.Fatal(err)
	}
	results := make(chan error, 2)
	go func() {
		results <- s.Commit(ctx, "c", "1:0", func(q postgres.Querier) (twophase.PreparedState, error) {
			return twophase.NewPreparedState(1, 0), insert(ctx, q, "unknown", 300)
		})
	}()
	go func() {
		results <- s.Prepare(ctx, "unknown/1", func(q postgres.Querier) error { return insert(ctx, q, "unknown", 301) })
	}()
	for count(t, p, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'") < 2 {
	}
	pg.Kill()
	for range 2 {
		if err := <-results; !errors.Is(err, twophase.ErrUnknownOutcome) {
			t.Errorf("the server went in the middle: %v", err)
		}
	}
	pg.Start()
	p.Reset()
	if last, err := s.Claim(ctx, "c", "1:1"); err != nil || last.Any() {
		t.Errorf("after it: %v, %v", last, err)
	}
}
