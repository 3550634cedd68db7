package sqlite_test

import (
	"context"
	"database/sql"
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/sqlite"
)

// store is one database file.
type store struct {
	cfg sqlite.Config
	db  *sql.DB // for reading back
}

func (s *store) New() (connectors.TxSink, error) { return sqlite.New(s.cfg) }

func (s *store) Rows(ctx context.Context) ([]conntest.Row, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id, key FROM target")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []conntest.Row
	for rows.Next() {
		var r conntest.Row
		if err := rows.Scan(&r.ID, &r.Key); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

func (s *store) Rejected(ctx context.Context) ([]conntest.Ref, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT topic, partition, "offset" FROM _millrace_rejects`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []conntest.Ref
	for rows.Next() {
		var r conntest.Ref
		if err := rows.Scan(&r.Topic, &r.Partition, &r.Offset); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

func kit(c connectors.Cluster, mode sqlite.Mode) conntest.Kit {
	return conntest.Kit{
		Cluster: c,
		Upsert:  mode == sqlite.Upsert,
		Poison:  []byte(`{"id":null,"key":"k","n":1}`),
		Open: func(tb testing.TB, name string) conntest.Store {
			cfg := sqlite.Config{
				Name: name, Path: filepath.Join(tb.TempDir(), "sink.db"), Table: "target", Mode: mode,
				Columns:     []sqlite.Column{{Name: "id", NotNull: true}, {Name: "key", NotNull: true}, {Name: "n", Type: sqlite.Integer}},
				BusyTimeout: 50 * time.Millisecond,
			}
			if mode == sqlite.Upsert {
				cfg.Keys = []string{"key"}
				cfg.Columns[1].From = "key"
			}
			db, err := sql.Open("sqlite", "file:"+cfg.Path+"?_pragma=busy_timeout(5000)")
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = db.Close() })
			return &store{cfg: cfg, db: db}
		},
	}
}

// brokers runs the kit on a cluster of the caller's instead of those that the
// tests start.
var brokers = flag.String("brokers", "", "host:port of a running cluster to run the conformance kit on")

// fake starts franz-go's own fake cluster: another implementation of the
// protocol than ours.
func fake(t *testing.T) connectors.Cluster {
	t.Helper()
	if *brokers != "" {
		return connectors.Brokers(*brokers)
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return connectors.Brokers(c.ListenAddrs()...)
}

// embedded starts our broker in this process, without a socket.
func embedded(t *testing.T) connectors.Cluster {
	t.Helper()
	if *brokers != "" {
		return connectors.Brokers(*brokers)
	}
	return brokertest.Start(t)
}

func TestConformanceAppend(t *testing.T) { conntest.RunSink(t, kit(embedded(t), sqlite.Append)) }

func TestConformanceUpsert(t *testing.T) { conntest.RunSink(t, kit(fake(t), sqlite.Upsert)) }
