package operator

import (
	"fmt"
	"sync"
	"testing"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/serde"
)

// TestTasksRestoreAtTheSameTime: one restorer serves all partitions of a table.
func TestTasksRestoreAtTheSameTime(t *testing.T) {
	key, val := NewCodec(serde.String), NewCodec(serde.String)
	src := TableSource[string, string]{Key: &key, Value: &val}
	restore := src.Restorer()
	var tasks sync.WaitGroup
	for p := range 8 {
		tasks.Go(func() {
			for i := range 1000 {
				value := fmt.Sprintf("value %d of partition %d", i, p)
				k, row, ok := restore(&task.Record{TimeMs: 1, Key: []byte("k"), Value: []byte(value)})
				if !ok || string(k) != "k" || string(row) != "\x00\x00\x00\x00\x00\x00\x00\x01"+value {
					t.Errorf("restored %q as %q = %q, %v", value, k, row, ok)
					return
				}
			}
		})
	}
	tasks.Wait()
}
