package connectors

import "context"

// Named points inside a connector's calls, at which the conformance kit stops,
// kills or freezes it. A connector announces them with [Reach]; without a kit
// that costs one lookup per call and does nothing.
const (
	// PointFence: Open has written the fence, its transaction is still open.
	PointFence = "open/fence"
	// PointData: Commit has written the records and has not yet written the
	// position.
	PointData = "commit/data"
	// PointPosition: Commit has written and checked the position; the next step
	// is the store's commit.
	PointPosition = "commit/position"
	// PointCommitted: the store has committed, the call has not yet returned.
	PointCommitted = "commit/committed"
)

type pointKey struct{}

// Reach announces that a call has come to a named point. It returns an error
// when the kit wants the call to fail there; the connector returns it like any
// error of its store.
func Reach(ctx context.Context, point string) error {
	if f, ok := ctx.Value(pointKey{}).(func(context.Context, string) error); ok {
		return f(ctx, point)
	}
	return nil
}

// WithPoints returns a context under which [Reach] calls f.
func WithPoints(ctx context.Context, f func(ctx context.Context, point string) error) context.Context {
	return context.WithValue(ctx, pointKey{}, f)
}
