package connectors_test

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/connectors"
)

// The guarantee is the minimum over what the store can do, what the settings
// leave of it, and what the reader sees.
func ExampleGuaranteed() {
	spec := connectors.Spec{Connector: "sqlite", Name: "orders", Class: connectors.Transactional}
	fmt.Println(connectors.Guaranteed(spec, connectors.ReadCommitted))
	fmt.Println(connectors.Guaranteed(spec, connectors.ReadUncommitted))
	// Output:
	// exactly-once (class transactional)
	// at-least-once (class transactional); at-least-once: isolation read_uncommitted shows records of aborted transactions
}

// The key of a windowed result carries the start of its window.
func ExampleWindowed() {
	key := append([]byte("CA"), 0, 0, 0, 0xe3, 0xc7, 0xa7, 0x34, 0)
	v, err := connectors.Windowed(connectors.String).Decode(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	w := v.(connectors.WindowedKey)
	fmt.Println(w.Key, w.Start.Format(time.DateOnly))
	// Output: CA 2001-01-01
}

// Settings that come as text are checked all at once.
func ExampleFields_Parse() {
	fields := connectors.Fields{
		{Name: "path", Required: true, Doc: "database file"},
		{Name: "batch", Kind: connectors.KindInt, Default: "500", Min: 1, Max: 10000},
	}
	_, err := fields.Parse(connectors.Config{"batch": "0", "colour": "red"})
	fmt.Println(err)
	// Output:
	// configuration error: path: required (database file)
	// batch: 0 is outside 1..10000
	// colour: no such setting
}
