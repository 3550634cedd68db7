package twophase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Cluster is how the log is reached. A *broker.Broker is one, and so is what [Brokers] returns.
type Cluster interface {
	Seeds() []string
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// Brokers is a cluster on the network.
func Brokers(seeds ...string) Cluster { return remote{seeds: seeds} }

type remote struct {
	seeds  []string
	dialer net.Dialer
}

func (r remote) Seeds() []string { return r.seeds }

func (r remote) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return r.dialer.DialContext(ctx, network, addr)
}

// Step is a point in a commit at which a process may crash.
type Step string

// The steps in order. Which of the two sides has what at each is in the tables above.
const (
	StepWork     Step = "work"     // the store's transaction is open, nothing is written
	StepWritten  Step = "written"  // both sides have been written to
	StepPrepared Step = "prepared" // the side that does not decide has prepared
	StepDecided  Step = "decided"  // the side that decides has committed
	StepDone     Step = "done"     // the other one has too
)

// Options of both directions.
type Options struct {
	// TransactionalID is the identity of the program in the log and in the store. An incarnation that opens it fences every
	// earlier one. At most 128 bytes, as it becomes part of names in the store. Required.
	TransactionalID string
	// Timeout is how long a transaction of the log may be open when the log decides; 30 s by default. When the store decides
	// there is none.
	Timeout time.Duration
	// DecisionTopic is where the log keeps its decisions when it decides: a compacted topic of one partition, made when it is
	// missing. "__millrace_decisions" by default; many transactional ids may share it.
	DecisionTopic string
	// ClientID is shown in the broker's log; "millrace-twophase" by default.
	ClientID string
	// Logger gets what recovery finds and does; nil discards it.
	Logger *slog.Logger
	// OnStep is called at each step. An error from it leaves everything where it is, as a crash at this point would. It is there
	// to test crash safety.
	OnStep func(Step) error
}

const maxTransactionalID = 128

// Validate names the field that is wrong.
func (o Options) Validate() error {
	switch {
	case o.TransactionalID == "":
		return errors.New("twophase: Options.TransactionalID is empty")
	case len(o.TransactionalID) > maxTransactionalID:
		return fmt.Errorf("twophase: Options.TransactionalID has %d bytes, at most %d are possible", len(o.TransactionalID), maxTransactionalID)
	case o.Timeout < 0:
		return fmt.Errorf("twophase: Options.Timeout is %v, must not be negative", o.Timeout)
	case o.Timeout > 0 && o.Timeout < 100*time.Millisecond:
		return fmt.Errorf("twophase: Options.Timeout is %v, must be at least 100ms", o.Timeout)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.DecisionTopic == "" {
		o.DecisionTopic = "__millrace_decisions"
	}
	if o.ClientID == "" {
		o.ClientID = "millrace-twophase"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnStep == nil {
		o.OnStep = func(Step) error { return nil }
	}
	return o
}
