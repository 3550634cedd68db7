package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/sqlite"
)

// world is a database with a sink that has taken over one partition.
type world struct {
	t    *testing.T
	path string
	db   *sql.DB
	sink *sqlite.Sink
	at   connectors.Position
}

var (
	tp    = connectors.TP{Topic: "t"}
	fence = connectors.Fence{Epoch: 1, Owner: "o"}
)

// setup runs ddl first, if there is any.
func setup(t *testing.T, c sqlite.Config, ddl string) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "a b%c.db")}
	c.Name, c.Path, c.Table, c.BusyTimeout = "s", w.path, "target", 20*time.Millisecond
	var err error
	if w.db, err = sql.Open("sqlite", w.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	if ddl != "" {
		w.exec(ddl)
	}
	if w.sink, err = sqlite.New(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.sink.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) exec(stmt string) {
	w.t.Helper()
	if _, err := w.db.Exec(stmt); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open() {
	w.t.Helper()
	if err := w.sink.Prepare(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	at, err := w.sink.Open(w.t.Context(), []connectors.Assignment{{TP: tp, Fence: fence}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.at = at[0]
}

// commit stores records given as key, value pairs; the value "" is null.
func (w *world) commit(pairs ...string) error {
	b := &connectors.Batch{}
	first := max(w.at.Next, 0)
	for i := 0; i < len(pairs); i += 2 {
		r := connectors.Record{TP: tp, Offset: first + int64(i/2), Key: pairs[i], RawKey: []byte(pairs[i]), Time: time.Date(2001, 1, 2, 0, 0, 0, 0, time.UTC)}
		if pairs[i+1] != "" {
			v, err := connectors.JSON.Decode([]byte(pairs[i+1]))
			if err != nil {
				w.t.Fatal(err)
			}
			r.Value, r.RawValue = v, []byte(pairs[i+1])
		}
		b.Records = append(b.Records, r)
	}
	to := connectors.Position{Next: first + int64(len(pairs)/2), Seq: w.at.Seq + 1}
	b.Ranges = []connectors.Range{{TP: tp, Fence: fence, From: w.at, To: to}}
	err := w.sink.Commit(w.t.Context(), b)
	if err == nil {
		w.at = to
	}
	return err
}

// rows returns the table as text, columns joined by a bar.
func (w *world) rows(query string) []string {
	w.t.Helper()
	rows, err := w.db.Query(query)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) holds(query string, want ...string) {
	w.t.Helper()
	if got := w.rows(query); !reflect.DeepEqual(got, want) {
		w.t.Errorf("%s\ngot  %q\nwant %q", query, got, want)
	}
}

func TestUpsertAndDelete(t *testing.T) {
	t.Parallel()
	w := setup(t, sqlite.Config{Mode: sqlite.Upsert, Keys: []string{"k"}, Columns: []sqlite.Column{
		{Name: "k", From: "key"}, {Name: "n", From: "value.n", Type: sqlite.Integer}, {Name: "doc", From: "value"},
	}}, "")
	w.open()
	if err := w.commit("a", `{"n":1}`, "b", `{"n":2}`, "a", `{"n":3}`, "c", `{"n":4}`, "b", "", "none", ""); err != nil {
		t.Fatal(err)
	}
	w.holds("SELECT k||'|'||n||'|'||doc FROM target ORDER BY k", `a|3|{"n":3}`, `c|4|{"n":4}`)
}

func TestExistingTable(t *testing.T) {
	t.Parallel()
	w := setup(t, sqlite.Config{}, `CREATE TABLE target (id INTEGER PRIMARY KEY, name VARCHAR(10), price DOUBLE, doc BLOB)`)
	w.open()
	if err := w.commit("", `{"id":1,"name":"x","price":2.5,"extra":true}`, "", `{"id":2}`); err != nil {
		t.Fatal(err)
	}
	w.holds("SELECT id||'|'||coalesce(name,'null')||'|'||coalesce(price,'null') FROM target ORDER BY id", "1|x|2.5", "2|null|null")
	err := w.commit("", `{"id":3}`, "", `{"id":1}`, "", `{"id":"four"}`, "", `{"id":5}`, "", `[]`)
	var got []string
	for _, r := range connectors.Rejections(err) {
		got = append(got, r.Reason)
		if r.Index != []int{1, 2, 4}[len(got)-1] {
			t.Errorf("reject %d: %v", r.Index, r)
		}
	}
	if want := []string{"constraint", "mapping", "mapping"}; !reflect.DeepEqual(got, want) {
		t.Errorf("reasons %q, want %q (%v)", got, want, err)
	}
	w.holds("SELECT count(*) FROM target", "2")
}

func TestDeletionNeedsItsKey(t *testing.T) {
	t.Parallel()
	w := setup(t, sqlite.Config{Mode: sqlite.Upsert, Keys: []string{"id"}, Columns: []sqlite.Column{{Name: "id"}}}, "")
	w.open()
	err := w.commit("k", "")
	if bad := connectors.Rejections(err); len(bad) != 1 || !strings.Contains(err.Error(), "take it from the key") {
		t.Errorf("got error %v", err)
	}
}

func TestRejectsKeepTheBytes(t *testing.T) {
	t.Parallel()
	w := setup(t, sqlite.Config{Columns: []sqlite.Column{{Name: "id"}}}, "")
	w.open()
	id := connectors.TopicID{9}
	b := &connectors.Batch{
		Rejects: []connectors.Reject{{Reason: "decode-value", Err: "why", Record: connectors.Record{
			TP: tp, Offset: 3, Time: time.UnixMilli(978307200000), RawKey: []byte("k\xff"), RawValue: nil,
			Headers: []connectors.Header{{Key: "a", Value: []byte("x")}, {Key: "b", Value: []byte("\xff")}, {Key: "c"}},
		}}},
		Ranges: []connectors.Range{{TP: tp, Fence: fence, From: w.at, To: connectors.Position{TopicID: id, Next: 4, Seq: 1}}},
	}
	if err := w.sink.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.holds(`SELECT sink||'|'||topic||'|'||topic_id||'|'||partition||'|'||"offset"||'|'||timestamp||'|'||hex(key)||'|'||(value IS NULL)||'|'||headers||'|'||reason||'|'||error||'|'||epoch FROM _millrace_rejects`,
		"s|t|"+id.String()+`|0|3|978307200000|6BFF|1|[["a","x"],["b",{"base64":"/w=="}],["c",null]]|decode-value|why|1`)
}

func TestPositions(t *testing.T) {
	t.Parallel()
	w := setup(t, sqlite.Config{Columns: []sqlite.Column{{Name: "id"}}}, "")
	w.open()
	if err := w.commit("", `{"id":"a"}`); err != nil {
		t.Fatal(err)
	}
	list := func() connectors.StoredPosition {
		t.Helper()
		rows, err := w.sink.Positions(t.Context())
		if err != nil || len(rows) != 1 {
			t.Fatalf("%v, %v", rows, err)
		}
		return rows[0]
	}
	if got := list(); got.TP != tp || got.Fence != fence || got.Position.Next != 1 || got.Position.Seq != 1 {
		t.Errorf("positions: %+v", got)
	}
	set := connectors.StoredPosition{TP: tp, Fence: connectors.Fence{Epoch: 2, Owner: "admin"}, Position: connectors.Position{Next: 50, LeaderEpoch: -1}}
	if err := w.sink.SetPositions(t.Context(), []connectors.StoredPosition{set}); err != nil {
		t.Fatal(err)
	}
	if got := list(); got.Position.Next != 50 || got.Position.Seq != 2 || got.Fence.Owner != "admin" {
		t.Errorf("positions after a change: %+v", got)
	}
	if err := w.commit("", `{"id":"b"}`); !errors.Is(err, connectors.ErrFenced) {
		t.Errorf("the old owner's commit: %v", err)
	}
	set.Fence.Epoch = 1
	if err := w.sink.SetPositions(t.Context(), []connectors.StoredPosition{set}); !errors.Is(err, connectors.ErrFenced) {
		t.Errorf("a change with a lower epoch: %v", err)
	}
}

// A batch of the time before a position was set by hand is stale, even if the
// position came back to where that batch starts and the owner is the same.
func TestBatchOfBeforeMatchesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t, sqlite.Config{Columns: []sqlite.Column{{Name: "id"}}}, "")
	w.open()
	set := connectors.StoredPosition{TP: tp, Fence: fence, Position: connectors.Position{Next: w.at.Next, LeaderEpoch: -1}}
	if err := w.sink.SetPositions(t.Context(), []connectors.StoredPosition{set}); err != nil {
		t.Fatal(err)
	}
	if err := w.commit("", `{"id":"late"}`); !errors.Is(err, connectors.ErrStale) {
		t.Errorf("got error %v, want one that matches ErrStale", err)
	}
	w.holds("SELECT id FROM target")
}

func TestErrorClasses(t *testing.T) {
	t.Parallel()
	columns := []sqlite.Column{{Name: "id"}}
	t.Run("table dropped", func(t *testing.T) {
		t.Parallel()
		w := setup(t, sqlite.Config{Columns: columns}, "")
		w.open()
		w.exec("DROP TABLE target")
		if err := w.commit("", `{"id":"a"}`); !errors.Is(err, connectors.ErrConfig) || !strings.Contains(err.Error(), "target") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("another writer", func(t *testing.T) {
		t.Parallel()
		w := setup(t, sqlite.Config{Columns: columns}, "")
		w.open()
		w.db.SetMaxOpenConns(1)
		w.exec("BEGIN IMMEDIATE")
		if err := w.commit("", `{"id":"a"}`); !errors.Is(err, connectors.ErrRetry) {
			t.Errorf("got error %v", err)
		}
		w.exec("ROLLBACK")
		if err := w.commit("", `{"id":"a"}`); err != nil {
			t.Errorf("after the other writer has gone: %v", err)
		}
	})
	t.Run("no database", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "text.db")
		if err := os.WriteFile(path, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.New(sqlite.Config{Name: "s", Path: path, Table: "x", Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Prepare(t.Context()); !errors.Is(err, connectors.ErrConfig) {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("no columns and no table", func(t *testing.T) {
		t.Parallel()
		w := setup(t, sqlite.Config{}, "")
		if err := w.sink.Prepare(t.Context()); !errors.Is(err, connectors.ErrConfig) {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("upsert without unique key", func(t *testing.T) {
		t.Parallel()
		w := setup(t, sqlite.Config{Mode: sqlite.Upsert, Keys: []string{"id"}}, "CREATE TABLE target (id TEXT, n INTEGER)")
		if err := w.sink.Prepare(t.Context()); !errors.Is(err, connectors.ErrConfig) || !strings.Contains(err.Error(), "unique") {
			t.Errorf("got error %v", err)
		}
		w.exec("CREATE UNIQUE INDEX u ON target(id)")
		if err := w.sink.Prepare(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCheckWritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(c sqlite.Config) []connectors.Issue {
		t.Helper()
		c.Name, c.Table = "s", "target"
		s, err := sqlite.New(c)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.Check(context.Background())
	}
	path := filepath.Join(dir, "new.db")
	if got := check(sqlite.Config{Path: path, Columns: []sqlite.Column{{Name: "id"}}}); len(got) != 0 {
		t.Errorf("issues: %+v", got)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("Check has created the database: %v", err)
	}
	if got := check(sqlite.Config{Path: path}); len(got) != 1 || got[0].Field != "Columns" {
		t.Errorf("issues: %+v", got)
	}
	if got := check(sqlite.Config{Path: filepath.Join(dir, "no", "x.db")}); len(got) != 1 || got[0].Field != "Path" || !got[0].Fatal {
		t.Errorf("issues: %+v", got)
	}
	w := setup(t, sqlite.Config{}, "CREATE TABLE target (other TEXT)")
	before, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	if got := check(sqlite.Config{Path: w.path, Columns: []sqlite.Column{{Name: "id"}}}); len(got) != 1 || !strings.Contains(got[0].Text, `"id"`) {
		t.Errorf("issues: %+v", got)
	}
	after, err := os.ReadFile(w.path)
	if err != nil || string(after) != string(before) {
		t.Errorf("Check has changed the database (%v)", err)
	}
}

// TestBigIntegersStayExact: JSON numbers do not pass through a float.
func TestBigIntegersStayExact(t *testing.T) {
	t.Parallel()
	w := setup(t, sqlite.Config{Columns: []sqlite.Column{{Name: "n", Type: sqlite.Integer}}}, "")
	w.open()
	n := json.Number("9007199254740993")
	if err := w.commit("", `{"n":`+string(n)+`}`); err != nil {
		t.Fatal(err)
	}
	w.holds("SELECT n FROM target", string(n))
}
