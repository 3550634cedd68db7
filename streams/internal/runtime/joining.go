package runtime

import (
	"context"

	"github.com/millrace/millrace/txn/session"
)

// joining is a Join on its way. Its goroutine has the member and the balancer until
// done is closed.
type joining struct {
	cancel context.CancelFunc
	done   chan struct{}
	joined session.Joined
	err    error
}
