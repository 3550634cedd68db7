package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ask waits for an answer of the coordinators.
func ask[T any](ctx context.Context, what string, question func(done func([]T, int16))) ([]T, error) {
	type answer struct {
		all  []T
		code int16
	}
	got := make(chan answer, 1)
	question(func(all []T, code int16) { got <- answer{all, code} })
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("broker: %s: %w", what, ctx.Err())
	case a := <-got:
		if err := kerr.ErrorForCode(a.code); err != nil {
			return nil, fmt.Errorf("broker: %s: %w", what, err)
		}
		return a.all, nil
	}
}
