package conntest

import (
	"context"
	"testing"

	"github.com/millrace/millrace/connectors"
)

// Row is one row of a store as the kit reads it back.
type Row struct {
	ID  string // field "id" of the record's value
	Key string // field "key" of the record's value
}

// Ref names a record.
type Ref struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Store is one store under test, empty when the kit gets it.
type Store interface {
	// New returns one more client of the store, as another process would be.
	New() (connectors.TxSink, error)
	// Rows returns what is stored as data, in any order.
	Rows(ctx context.Context) ([]Row, error)
	// Rejected returns what is stored as rejects, in any order.
	Rejected(ctx context.Context) ([]Ref, error)
}

// Kit describes a sink to the conformance kit.
type Kit struct {
	// Cluster is any cluster of the Kafka protocol. Without one, the cases
	// that need it are left out.
	Cluster connectors.Cluster
	// Open returns an empty store. It is called once per case; name is fit for
	// a file or table name. What it opens it closes through tb.Cleanup.
	Open func(tb testing.TB, name string) Store
	// Upsert: the store keeps one row per key, the last one written.
	Upsert bool
	// Poison is a value that the sink rejects with a RejectError though it is
	// valid JSON; nil when there is none.
	Poison []byte
	// Seed of all random choices; 0 takes one and prints it.
	Seed uint64
	// Only runs the cases whose names contain it.
	Only string
}
