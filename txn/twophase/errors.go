package twophase

import "errors"

var (
	// ErrFenced says that a newer incarnation has taken the transactional id. This one is of no use any more; what it did last
	// is decided by the newer one, and by the rules of the page above as any crash at that place.
	ErrFenced = errors.New("twophase: fenced, a newer incarnation has the transactional id")

	// ErrUnsupported says that the cluster does not speak what two-phase commit needs.
	ErrUnsupported = errors.New("twophase: the cluster does not support it")

	// ErrAborted says that nothing happened, neither in the store nor in the log. The next transaction may begin.
	ErrAborted = errors.New("twophase: aborted")

	// ErrUnfinished says that the transaction is decided, or may be, and that one of the two sides does not know yet. Nothing is
	// lost and nothing can change its mind: Recover finishes it, and so does the next Open.
	ErrUnfinished = errors.New("twophase: not finished, recover")

	// ErrUnknownOutcome is what a store returns that can not say whether its commit took place.
	ErrUnknownOutcome = errors.New("twophase: the store does not say whether it committed")
)
