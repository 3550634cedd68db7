package operator_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/task"
)

// TestRestorersDoNotShareMemory: all workers of a process restore through the same function of the topology, at the same
// time. Rows that one of them had not stored yet were overwritten by another.
func TestRestorersDoNotShareMemory(t *testing.T) {
	app := streams.New("app")
	app.Table[string, string]("rows").ToStream().To("out")
	top, err := app.Topology()
	if err != nil {
		t.Fatal(err)
	}
	restore := top.Subs[0].Stores[0].FromSource
	if restore == nil {
		t.Fatal("the table's store is not restored from its source")
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 1000 {
				want := fmt.Sprintf("%d/%d", w, i)
				key, row, ok := restore(&task.Record{Key: []byte(want), Value: []byte(want), TimeMs: int64(i)})
				_, _, other := restore(&task.Record{Key: []byte("other"), Value: []byte("x"), TimeMs: 1})
				if !ok || !other || string(key) != want || string(row[8:]) != want {
					t.Errorf("row %q of key %q, want %q", row[8:], key, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
