package streams

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/millrace/millrace/streams/internal/operator"
)

// Print writes a line for each record to w, "[label]: key, value", to see what goes
// by; a null is written as null. Lines of several tasks do not mix. A record that
// is processed again after a crash is printed again. An error of w is one of the
// record.
func (s Stream[K, V]) Print(w io.Writer, label string, opts ...Opt) {
	var mu sync.Mutex
	s.filter("print", func() operator.Predicate[K, V] {
		return func(_ context.Context, r *operator.Record[K, V]) (bool, error) {
			var key, value any = r.Key, r.Value
			if r.NullKey {
				key = "null"
			}
			if r.NullValue {
				value = "null"
			}
			mu.Lock()
			defer mu.Unlock()
			_, err := fmt.Fprintf(w, "[%s]: %v, %v\n", label, key, value)
			return false, err
		}
	}, opts)
}
