package streams

import (
	"maps"
	"strings"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
)

// StoreIn keeps the store of the operator in an engine other than the job's; see
// Engine. A store that changes its engine is rebuilt from its changelog.
func StoreIn(engine state.Engine) Opt { return Opt{"StoreIn", func(o *options) { o.engine = engine }} }

// Logged with false leaves a store without a changelog. It costs less, and begins
// empty whenever its task starts: after a stop, a crash, an aborted transaction or a
// move. For what may be forgotten, like rows that save a second look.
func Logged(logged bool) Opt { return Opt{"Logged", func(o *options) { o.unlogged = !logged }} }

// ChangelogConfig adds to the configuration of a store's changelog when it is made,
// or changes it: "segment.bytes", "min.insync.replicas" and so on. It has to stay
// compacted; with "compact,delete" and a retention, rows that were not written for
// that long are missing after a restore.
func ChangelogConfig(config map[string]string) Opt {
	return Opt{"ChangelogConfig", func(o *options) {
		o.changelog = maps.Clone(o.changelog)
		if o.changelog == nil {
			o.changelog = map[string]string{}
		}
		maps.Copy(o.changelog, config)
	}}
}

// keep is a store as its options want it kept; n is where mistakes are reported.
func (a *App) keep(n *topology.Node, name string, o options) *topology.Store {
	s := &topology.Store{Name: name, InMemory: o.inMemory, Engine: o.engine, Config: o.changelog}
	if o.engine != nil && o.inMemory {
		a.graph.Fail(n, "InMemory and StoreIn exclude each other")
	}
	if s.Engine != nil && !s.Engine.Durable() {
		s.InMemory = true
	}
	if o.unlogged {
		if o.changelog != nil {
			a.graph.Fail(n, "Logged(false) and ChangelogConfig exclude each other")
		}
		return s
	}
	s.Changelog = topology.InternalName(a.id, name, topology.Changelog)
	if p, ok := o.changelog["cleanup.policy"]; ok && !strings.Contains(p, "compact") {
		a.graph.Fail(n, "cleanup.policy is %q, a changelog must be compacted, or it forgets rows", p)
	}
	return s
}
