package workload

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Options say where and how long to work. Only Seeds has no default.
type Options struct {
	// Seeds are host:port of some brokers.
	Seeds []string
	// Dial opens connections; nil is TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	Clients    int           // how many work at the same time; default 8, at most 1000
	Duration   time.Duration // how long they work, without the drain; default 20 s
	Topics     int           // default 2, at most 100
	Partitions int           // of each topic; default 3, at most 1000
	// Replication is the topics' replication factor; 0 leaves it to the brokers.
	Replication int16
	// Seed decides what the clients do. The order in which their operations meet
	// is up to the machine.
	Seed uint64
	// Name starts the names of topics, groups and transactional ids; default
	// "millrace-verify". The seed and the time follow, so no two runs meet.
	Name string
	// Patience is how long clients have to work again and readers to reach the
	// end, once the load is over and nobody disturbs any more; default 1 min.
	Patience time.Duration
	// CutOneIn lets one in so many requests lose its connection while the clients
	// work, mostly before the answer; 0 cuts none.
	CutOneIn int
	// DelayOneIn lets one in so many requests and answers wait a moment, and all that
	// follows on its connection behind it; 0 delays none.
	DelayOneIn int
	// LateOneIn lets one in so many requests of producers arrive seconds late on
	// another connection, a second time or for the first time after the client was cut
	// off and asked again; 0 lets none.
	LateOneIn int
	// OnlyVersion2 leaves out clients that speak version 1 of the transaction
	// protocol, which can not tell a late end of one transaction from the end of the
	// next (KAFKA-17754): with cuts and late requests such a client may break promises on any broker.
	OnlyVersion2 bool
	// Keep leaves the topics and groups there.
	Keep bool
	// Progress is called about ten times a second, by one goroutine.
	Progress func(Progress)
}

// Phase is a part of a run.
type Phase string

// The phases in their order.
const (
	Working  Phase = "working"  // under load
	Settling Phase = "settling" // each client works once more, then no transaction is open
	Draining Phase = "draining" // readers go from the start to the end
)

// Progress tells how far a run is.
type Progress struct {
	Phase   Phase
	Elapsed time.Duration // since the start
	// Done and Failed count operations that ended; Unknown is the part of Failed
	// whose outcome is not known.
	Done, Failed, Unknown int64
	// Acknowledged counts records, Consumed operations that committed offsets of a
	// group. Cuts, Delays and Lates are what CutOneIn, DelayOneIn and LateOneIn did.
	Acknowledged, Consumed, Cuts, Delays, Lates int64
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	if o.Clients == 0 {
		o.Clients = 8
	}
	if o.Duration == 0 {
		o.Duration = 20 * time.Second
	}
	if o.Topics == 0 {
		o.Topics = 2
	}
	if o.Partitions == 0 {
		o.Partitions = 3
	}
	if o.Replication == 0 {
		o.Replication = -1
	}
	if o.Name == "" {
		o.Name = "millrace-verify"
	}
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	return o
}

// Validate names the field that is out of bounds.
func (o Options) Validate() error {
	if len(o.Seeds) == 0 {
		return fmt.Errorf("workload: Options.Seeds is empty, at least one host:port is needed")
	}
	for _, f := range []struct {
		name     string
		have, to int64
	}{
		{"Clients", int64(o.Clients), 1000}, {"Topics", int64(o.Topics), 100}, {"Partitions", int64(o.Partitions), 1000},
		{"CutOneIn", int64(o.CutOneIn), 1 << 30}, {"DelayOneIn", int64(o.DelayOneIn), 1 << 30}, {"LateOneIn", int64(o.LateOneIn), 1 << 30},
		{"Duration", int64(o.Duration), int64(24 * time.Hour)}, {"Patience", int64(o.Patience), int64(24 * time.Hour)},
	} {
		if f.have < 0 || f.have > f.to {
			return fmt.Errorf("workload: Options.%s is %d, must be in [0, %d]", f.name, f.have, f.to)
		}
	}
	return nil
}
