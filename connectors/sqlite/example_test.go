package sqlite_test

import (
	"fmt"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/sqlite"
)

// The results of a windowed stream go into a table with one row per state and
// day; the start of the window is part of the record's key.
func ExampleNew() {
	s, err := sqlite.New(sqlite.Config{
		Name: "delays", Path: "delays.db", Table: "delays",
		Mode: sqlite.Upsert, Keys: []string{"state", "day"},
		Columns: []sqlite.Column{
			{Name: "state", From: "key"},
			{Name: "day", From: "window.start", Type: sqlite.Text},
			{Name: "flights", From: "value.count", Type: sqlite.Integer, NotNull: true},
			{Name: "delay", From: "value.mean", Type: sqlite.Real},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(connectors.Guaranteed(s.Spec(), connectors.ReadCommitted))
	// Output: exactly-once (class transactional)
}

// The same settings as they stand in a configuration file.
func ExampleParse() {
	c, err := sqlite.Parse(connectors.Config{
		"name": "delays", "path": "delays.db", "table": "delays", "mode": "upsert", "keys": "state, day",
		"columns": "state = key, day TEXT = window.start, flights INTEGER NOT NULL = value.count, delay REAL = value.mean",
	})
	fmt.Println(len(c.Columns), c.Columns[2].From, err)
	// Output: 4 value.count <nil>
}
