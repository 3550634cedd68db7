package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors"
)

const createOffsets = `CREATE TABLE IF NOT EXISTS _millrace_offsets (
	sink TEXT NOT NULL, topic TEXT NOT NULL, topic_id TEXT NOT NULL, partition INTEGER NOT NULL,
	next_offset INTEGER NOT NULL, leader_epoch INTEGER NOT NULL,
	epoch INTEGER NOT NULL, seq INTEGER NOT NULL, owner TEXT NOT NULL,
	written_at INTEGER NOT NULL, meta BLOB,
	PRIMARY KEY (sink, topic, partition)) STRICT, WITHOUT ROWID`

const createRejects = `CREATE TABLE IF NOT EXISTS _millrace_rejects (
	sink TEXT NOT NULL, topic TEXT NOT NULL, topic_id TEXT NOT NULL, partition INTEGER NOT NULL, "offset" INTEGER NOT NULL,
	timestamp INTEGER NOT NULL, key BLOB, value BLOB, headers TEXT,
	reason TEXT NOT NULL, error TEXT NOT NULL, epoch INTEGER NOT NULL, written_at INTEGER NOT NULL,
	PRIMARY KEY (sink, topic, topic_id, partition, "offset")) STRICT, WITHOUT ROWID`

// quote makes an SQL identifier of any name.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Prepare creates the offsets table, the table of rejects and, when the
// settings describe its columns, the target table.
func (s *Sink) Prepare(ctx context.Context) error {
	err := s.inTx(ctx, "prepare", func(tx *sql.Tx) error {
		for _, ddl := range []string{createOffsets, createRejects} {
			if _, err := tx.ExecContext(ctx, ddl); err != nil {
				return err
			}
		}
		have, err := tableColumns(ctx, tx, s.cfg.Table)
		if err != nil {
			return err
		}
		if len(have) == 0 {
			if len(s.cfg.Columns) == 0 {
				return fmt.Errorf("%w: table %s does not exist and no Columns say how to create it", connectors.ErrConfig, s.cfg.Table)
			}
			_, err = tx.ExecContext(ctx, s.cfg.createTable())
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.plan(ctx)
}

func (c Config) createTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (", quote(c.Table))
	for i, col := range c.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		t := col.Type
		if t == "" {
			t = Text
		}
		fmt.Fprintf(&b, "%s %s", quote(col.Name), t)
		if col.NotNull || isKey(c.Keys, col.Name) {
			b.WriteString(" NOT NULL")
		}
	}
	if len(c.Keys) > 0 {
		fmt.Fprintf(&b, ", PRIMARY KEY (%s)", quoteAll(c.Keys))
	}
	b.WriteString(") STRICT")
	return b.String()
}

func isKey(keys []string, name string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, name) })
}

func quoteAll(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quote(n)
	}
	return strings.Join(out, ", ")
}

type tableColumn struct {
	name string
	typ  Type // by SQLite's affinity rules
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// tableColumns returns the columns of a table or view; none when there is no
// such table.
func tableColumns(ctx context.Context, q querier, table string) (cols []tableColumn, err error) {
	rows, err := q.QueryContext(ctx, `SELECT name, type FROM pragma_table_info(?) ORDER BY cid`, table)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows, &err)
	for rows.Next() {
		var name, declared string
		if err := rows.Scan(&name, &declared); err != nil {
			return nil, err
		}
		cols = append(cols, tableColumn{name: name, typ: affinity(declared)})
	}
	return cols, rows.Err()
}

func closeRows(rows *sql.Rows, err *error) {
	if e := rows.Close(); e != nil && *err == nil {
		*err = e
	}
}

// affinity is SQLite's rule from a declared type to one of its storage classes
// (sqlite.org/datatype3.html, section 3.1).
func affinity(declared string) Type {
	d := strings.ToUpper(declared)
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(d, p) })
	}
	switch {
	case has("INT"):
		return Integer
	case has("CHAR", "CLOB", "TEXT"):
		return Text
	case d == "" || has("BLOB"):
		return Blob
	case has("REAL", "FLOA", "DOUB"):
		return Real
	}
	return Real // NUMERIC
}

// uniqueOver reports whether the key columns are the primary key or have a
// unique index of their own, without which an upsert cannot find its row.
func uniqueOver(ctx context.Context, q querier, table string, keys []string) (ok bool, err error) {
	want := sortedLower(keys)
	rows, err := q.QueryContext(ctx, `
		SELECT '' AS idx, name FROM pragma_table_info(?1) WHERE pk > 0
		UNION ALL
		SELECT l.name, i.name FROM pragma_index_list(?1) l, pragma_index_info(l.name) i WHERE l."unique" = 1 AND l.partial = 0
		ORDER BY 1`, table)
	if err != nil {
		return false, err
	}
	defer closeRows(rows, &err)
	sets := map[string][]string{}
	for rows.Next() {
		var index string
		var column sql.NullString // null = an expression
		if err := rows.Scan(&index, &column); err != nil {
			return false, err
		}
		sets[index] = append(sets[index], column.String)
	}
	for _, set := range sets {
		if slices.Equal(sortedLower(set), want) {
			ok = true
		}
	}
	return ok, rows.Err()
}

func sortedLower(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = strings.ToLower(s)
	}
	slices.Sort(out)
	return out
}

// Check looks at the folder, the file and the tables without writing.
func (s *Sink) Check(ctx context.Context) []connectors.Issue {
	fatal := func(field, format string, args ...any) []connectors.Issue {
		return []connectors.Issue{{Field: field, Text: fmt.Sprintf(format, args...), Fatal: true}}
	}
	if dir := filepath.Dir(s.cfg.Path); !isDir(dir) {
		return fatal("Path", "folder %s does not exist", dir)
	}
	if _, err := os.Stat(s.cfg.Path); err != nil {
		if !os.IsNotExist(err) {
			return fatal("Path", "%v", err)
		}
		if len(s.cfg.Columns) == 0 {
			return fatal("Columns", "table %s does not exist and no columns say how to create it", s.cfg.Table)
		}
		return nil // Prepare will create it
	}
	// A handle of its own, read only: the sink's would set the journal mode.
	db, err := s.cfg.open(url.Values{"mode": {"ro"}, "_pragma": {s.cfg.busyPragma()}})
	if err != nil {
		return fatal("Path", "%v", err)
	}
	defer func() { _ = db.Close() }() // nothing was written that could fail to be
	have, err := tableColumns(ctx, db, s.cfg.Table)
	if err != nil {
		return fatal("Path", "%v", err)
	}
	if len(have) == 0 {
		if len(s.cfg.Columns) == 0 {
			return fatal("Columns", "table %s does not exist and no columns say how to create it", s.cfg.Table)
		}
		return nil
	}
	if _, err := s.cfg.resolve(ctx, db, have); err != nil {
		return fatal("Columns", "%v", err)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
