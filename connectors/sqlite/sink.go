package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors"
)

// Sink stores records in one table. It is owned by one goroutine, which makes
// one call at a time; several sinks, in this process or others, may share the
// database.
type Sink struct {
	cfg  Config
	db   *sql.DB // one connection: SQLite has one writer, and the owner makes one call at a time
	stmt *plan   // nil until Prepare or the first Commit has seen the table
}

var (
	_ connectors.TxSink  = (*Sink)(nil)
	_ connectors.Offsets = (*Sink)(nil)
)

// New returns a sink for the settings. It opens nothing; the database is opened
// by the first call that needs it.
func New(c Config) (*Sink, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Mode == "" {
		c.Mode = Append
	}
	if c.BusyTimeout == 0 {
		c.BusyTimeout = defaultBusy
	}
	db, err := c.open(url.Values{
		"_txlock": {"immediate"},
		"_pragma": {c.busyPragma(), "journal_mode(WAL)", "synchronous(FULL)"},
	})
	if err != nil {
		return nil, err
	}
	return &Sink{cfg: c, db: db}, nil
}

func (c Config) busyPragma() string {
	return fmt.Sprintf("busy_timeout(%d)", c.BusyTimeout.Milliseconds())
}

// open makes a handle; the file itself is opened by its first use.
func (c Config) open(query url.Values) (*sql.DB, error) {
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: c.Path}).EscapedPath(), RawQuery: query.Encode()}).String()
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("%w: sqlite: %s: %w", connectors.ErrConfig, c.Path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// Spec tells what the sink can do: everything, with no setting that weakens it.
func (s *Sink) Spec() connectors.Spec {
	return connectors.Spec{
		Connector: "sqlite", Name: s.cfg.Name, Class: connectors.Transactional,
		Rejects: true, BlocksTakeOver: true,
	}
}

// Release has nothing to forget: all state is in the database.
func (s *Sink) Release(context.Context, []connectors.TP) error { return nil }

// Close closes the database.
func (s *Sink) Close() error { return s.db.Close() }

// inTx runs f in one transaction, which takes the write lock at its start and
// is rolled back when f fails or ctx ends. The error is classed for the contract.
func (s *Sink) inTx(ctx context.Context, what string, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return classify(what, err)
	}
	// After a commit this does nothing; if a panic passes through, it lets go of
	// the write lock. Its error adds nothing to the one that is on its way.
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		if len(connectors.Rejections(err)) > 0 {
			return err
		}
		return classify(what, err)
	}
	if err := tx.Commit(); err != nil {
		return classifyCommit(ctx, err)
	}
	return nil
}

// plan is what the shape of the table and the settings make of a record. It is
// not changed once made.
type plan struct {
	columns []target
	keys    []target
	insert  string // insert or upsert
	remove  string // delete by key, mode Upsert
}

type target struct {
	name string
	from path
	typ  Type
}

// plan looks at the table and fills s.stmt.
func (s *Sink) plan(ctx context.Context) error {
	have, err := tableColumns(ctx, s.db, s.cfg.Table)
	if err != nil {
		return classify("read the columns of "+s.cfg.Table, err)
	}
	if len(have) == 0 {
		return classify("plan", fmt.Errorf("%w: table %s does not exist in %s", connectors.ErrConfig, s.cfg.Table, s.cfg.Path))
	}
	p, err := s.cfg.resolve(ctx, s.db, have)
	if err != nil {
		return classify("plan", err)
	}
	s.stmt = p
	return nil
}

// resolve matches the settings with the columns the table has.
func (c Config) resolve(ctx context.Context, q querier, have []tableColumn) (*plan, error) {
	byName := map[string]tableColumn{}
	for _, col := range have {
		byName[strings.ToLower(col.name)] = col
	}
	columns := c.Columns
	if len(columns) == 0 {
		for _, col := range have {
			columns = append(columns, Column{Name: col.name})
		}
	}
	p := &plan{}
	var errs []error
	for _, want := range columns {
		col, ok := byName[strings.ToLower(want.Name)]
		if !ok {
			errs = append(errs, fmt.Errorf("%w: table %s has no column %q", connectors.ErrConfig, c.Table, want.Name))
			continue
		}
		from, err := parsePath(want.source())
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: column %q: %w", connectors.ErrConfig, want.Name, err))
			continue
		}
		typ := want.Type
		if typ == "" {
			typ = col.typ
		}
		t := target{name: col.name, from: from, typ: typ}
		p.columns = append(p.columns, t)
		if isKey(c.Keys, col.name) {
			p.keys = append(p.keys, t)
		}
	}
	if c.Mode == Upsert {
		if len(p.keys) < len(c.Keys) {
			errs = append(errs, fmt.Errorf("%w: table %s lacks one of the key columns %v", connectors.ErrConfig, c.Table, c.Keys))
		}
		unique, err := uniqueOver(ctx, q, c.Table, c.Keys)
		if err != nil {
			errs = append(errs, err)
		} else if !unique {
			errs = append(errs, fmt.Errorf("%w: key columns %v of table %s are neither its primary key nor under a unique index", connectors.ErrConfig, c.Keys, c.Table))
		}
	}
	p.statements(c)
	return p, errors.Join(errs...)
}

func (p *plan) statements(c Config) {
	names, marks := make([]string, len(p.columns)), make([]string, len(p.columns))
	var sets []string
	for i, t := range p.columns {
		names[i], marks[i] = t.name, "?"
		if !isKey(c.Keys, t.name) {
			sets = append(sets, quote(t.name)+" = excluded."+quote(t.name))
		}
	}
	p.insert = fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", quote(c.Table), quoteAll(names), strings.Join(marks, ", "))
	if c.Mode != Upsert {
		return
	}
	action := "NOTHING"
	if len(sets) > 0 {
		action = "UPDATE SET " + strings.Join(sets, ", ")
	}
	p.insert += fmt.Sprintf(" ON CONFLICT (%s) DO %s", quoteAll(c.Keys), action)
	where := make([]string, len(p.keys))
	for i, t := range p.keys {
		where[i] = quote(t.name) + " = ?"
	}
	p.remove = fmt.Sprintf("DELETE FROM %s WHERE %s", quote(c.Table), strings.Join(where, " AND "))
}

// nowMs is the wall clock in milliseconds, for the columns that tell a reader
// when a row was written; nothing is decided by it.
func nowMs() int64 { return time.Now().UnixMilli() }
