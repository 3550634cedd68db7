package compact

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

// TestAllocations: a round allocates for its table, not for its records.
func TestAllocations(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.Snappy} {
		var batches []record.Batch
		for i := range int64(50) {
			var b record.Builder
			b.Reset(record.BuilderOptions{Codec: codec, BaseOffset: 100 * i})
			for k := range 100 {
				b.Append(1, fmt.Appendf(nil, "key-%d", (int(i)*37+k)%500), []byte("value"), nil)
			}
			one, err := b.Batch()
			if err != nil {
				t.Fatal(err)
			}
			batches = append(batches, one)
		}
		table := NewTable(1 << 20)
		x := NewIndex(table, 0, nil)
		add := func() {
			for _, b := range batches {
				if more, err := x.Add(b); !more || err != nil {
					t.Fatal(more, err)
				}
			}
		}
		add()
		f := NewFilter(Round{Table: table, Indexed: x.Next(), End: x.Next(), Last: map[int64]producer.Last{}})
		filter := func() {
			for _, b := range batches {
				if _, err := f.Apply(b); err != nil {
					t.Fatal(err)
				}
			}
		}
		filter()
		for what, fn := range map[string]func(){"index": add, "filter": filter} {
			if n := testing.AllocsPerRun(10, fn); n > 50 { // of 5000 records in 50 batches
				t.Errorf("%v, %s: %v allocations", codec, what, n)
			}
		}
	}
}
