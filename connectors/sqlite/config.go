package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors"
)

// Mode says what a record does to the table.
type Mode string

// The modes.
const (
	Append Mode = "append" // each record is a new row
	Upsert Mode = "upsert" // each record replaces the row of its key columns; null deletes it
)

// Column is one column of the target table.
type Column struct {
	Name string
	// From is where the value comes from, see the package comment; empty means
	// "value." + Name.
	From string
	// Type is the column's type. Times become RFC 3339 text in a Text column and
	// milliseconds since 1970 in an Integer column; objects and lists become
	// JSON text. Empty means Text in a table that is created, and the declared
	// type in one that exists.
	Type    Type
	NotNull bool // a record without this value is rejected
}

// Config are the settings of a sink. Name, Path and Table are required.
type Config struct {
	// Name is the sink's identity, see connectors.Spec.
	Name string
	// Path is the database file; it is created when missing, its folder is not.
	Path string
	// Table is the target. It is created from Columns when it does not exist.
	Table string
	Mode  Mode // default Append
	// Columns map records to the table. Empty: every column of the existing
	// table is filled from the value's field of the same name.
	Columns []Column
	// Keys are the columns that name a row in mode Upsert; in an existing table
	// they must be its primary key or have a unique index.
	Keys []string
	// BusyTimeout is how long a statement waits for another writer before the
	// call is answered with ErrRetry. Default 1 s, at most 1 min.
	BusyTimeout time.Duration
}

const (
	defaultBusy = time.Second
	maxBusy     = time.Minute
)

// Validate names the first setting that is wrong and its limit.
func (c Config) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	for _, need := range [...]struct{ field, value string }{{"Name", c.Name}, {"Path", c.Path}, {"Table", c.Table}} {
		if need.value == "" {
			bad(need.field, "required")
		}
	}
	if strings.ContainsRune(c.Path, '?') {
		bad("Path", "%q contains a question mark, which SQLite reads as the start of options", c.Path)
	}
	if c.Path == ":memory:" {
		bad("Path", "a database in memory has nothing that survives the process; use a file")
	}
	if strings.HasPrefix(strings.ToLower(c.Table), "_millrace_") || strings.HasPrefix(strings.ToLower(c.Table), "sqlite_") {
		bad("Table", "%q: names starting with _millrace_ and sqlite_ are taken", c.Table)
	}
	if c.BusyTimeout < 0 || c.BusyTimeout > maxBusy {
		bad("BusyTimeout", "%v is outside 0..%v", c.BusyTimeout, maxBusy)
	}
	c.validateColumns(bad)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: sqlite: %w", connectors.ErrConfig, errors.Join(errs...))
}

func (c Config) validateColumns(bad func(field, format string, args ...any)) {
	names := map[string]bool{}
	for i, col := range c.Columns {
		field := fmt.Sprintf("Columns[%d]", i)
		switch {
		case col.Name == "":
			bad(field, "a column needs a name")
		case names[strings.ToLower(col.Name)]:
			bad(field, "%q is there twice", col.Name)
		}
		names[strings.ToLower(col.Name)] = true
		if !slices.Contains([]Type{"", Text, Integer, Real, Blob}, col.Type) {
			bad(field, "type %q is none of TEXT, INTEGER, REAL, BLOB", col.Type)
		}
		if _, err := parsePath(col.source()); err != nil {
			bad(field, "%v", err)
		}
	}
	switch c.Mode {
	case "", Append:
		if len(c.Keys) > 0 {
			bad("Keys", "mode append has no key columns")
		}
	case Upsert:
		if len(c.Keys) == 0 {
			bad("Keys", "mode upsert needs the columns that name a row")
		}
		for _, k := range c.Keys {
			if len(c.Columns) > 0 && !names[strings.ToLower(k)] {
				bad("Keys", "%q is none of the columns", k)
			}
		}
	default:
		bad("Mode", "%q is neither append nor upsert", c.Mode)
	}
}

func (c Column) source() string {
	if c.From == "" {
		return "value." + c.Name
	}
	return c.From
}

// Fields is the typed configuration for settings that come as text.
var Fields = connectors.Fields{
	{Name: "name", Required: true, Doc: "identity of the sink; key of its stored positions"},
	{Name: "path", Required: true, Doc: "database file"},
	{Name: "table", Required: true, Doc: "target table"},
	{Name: "mode", Default: string(Append), OneOf: []string{string(Append), string(Upsert)}, Doc: "append a row per record, or replace the row of the key columns"},
	{Name: "columns", Kind: connectors.KindList, Doc: "NAME [TYPE] [NOT NULL] [= SOURCE], separated by commas; empty: the columns of the existing table"},
	{Name: "keys", Kind: connectors.KindList, Doc: "key columns of mode upsert"},
	{Name: "busy-timeout", Kind: connectors.KindDuration, Default: "1s", Doc: "how long to wait for another writer"},
}

// Parse reads settings that come as text.
func Parse(in connectors.Config) (Config, error) {
	v, err := Fields.Parse(in)
	if err != nil {
		return Config{}, err
	}
	c := Config{
		Name: v.String("name"), Path: v.String("path"), Table: v.String("table"),
		Mode: Mode(v.String("mode")), Keys: v.List("keys"), BusyTimeout: v.Duration("busy-timeout"),
	}
	for _, text := range v.List("columns") {
		col, err := parseColumn(text)
		if err != nil {
			return Config{}, fmt.Errorf("%w: columns: %w", connectors.ErrConfig, err)
		}
		c.Columns = append(c.Columns, col)
	}
	return c, c.Validate()
}

// parseColumn reads NAME [TYPE] [NOT NULL] [= SOURCE].
func parseColumn(text string) (Column, error) {
	left, source, _ := strings.Cut(text, "=")
	words := strings.Fields(left)
	if len(words) == 0 {
		return Column{}, fmt.Errorf("%q has no column name", text)
	}
	col := Column{Name: words[0], From: strings.TrimSpace(source)}
	rest := words[1:]
	if n := len(rest); n >= 2 && strings.EqualFold(rest[n-2], "not") && strings.EqualFold(rest[n-1], "null") {
		col.NotNull, rest = true, rest[:n-2]
	}
	switch len(rest) {
	case 0:
	case 1:
		col.Type = Type(strings.ToUpper(rest[0]))
	default:
		return Column{}, fmt.Errorf("%q: want NAME [TYPE] [NOT NULL] [= SOURCE]", text)
	}
	return col, nil
}
