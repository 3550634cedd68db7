package streams

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/serde"
)

// App is one stream processing application: a topology under an id. Define
// it on one goroutine; once it is described, tested or run it no longer
// changes.
type App struct {
	id       string
	registry serde.Registry
	graph    *topology.Graph
	onError  task.Handler
	resolve  []func() error                // find the serdes, in order of definition
	prepared []func(context.Context) error // what serdes do before they write; filled by resolve
	errs     []error

	sources       map[any]any    // by (topic, type): the stream or table made before
	shown         map[string]any // stores that can be asked for over HTTP: a shownStore each
	repartitioned map[any]any    // by outlet and name: the stream behind the repartition topic

	mu     sync.Mutex // guards what follows
	sealed bool       // built or failed to; the definition is over
	built  *topology.Topology
	err    error
}

// New starts an application. The id is its identity on the cluster: the name of
// its consumer group and the prefix of its internal topics. The options are
// OnError and RequireNames.
func New(id string, opts ...Opt) *App {
	a := &App{id: id, graph: topology.NewGraph(id), sources: map[any]any{}, shown: map[string]any{}, repartitioned: map[any]any{}}
	o, err := collect(opts, forApp)
	if err != nil {
		a.errs = append(a.errs, fmt.Errorf("application %s: %w", id, err))
	}
	a.onError = o.onError
	a.graph.RequireNames = o.requireNames
	return a
}

// ID is the id given to New.
func (a *App) ID() string { return a.id }

// RegisterSerde makes s the serde of type T, and of *T, wherever an operator
// has no other.
func (a *App) RegisterSerde[T any](s serde.Serde[T]) { serde.Register(&a.registry, s) }

// Serde is the serde that this application finds for type T.
func (a *App) Serde[T any]() (serde.Serde[T], error) { return serde.For[T](&a.registry) }

// Topology builds the physical plan, once. All mistakes of the definition come
// as one error: types without a serde, options without effect, names used
// twice.
func (a *App) Topology() (*topology.Topology, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.sealed {
		a.sealed = true
		a.built, a.err = a.build()
	}
	return a.built, a.err
}

func (a *App) build() (*topology.Topology, error) {
	errs := a.errs
	for _, r := range a.resolve {
		errs = append(errs, r())
	}
	t, err := a.graph.Plan()
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("application %s: %w", a.id, err)
	}
	return t, nil
}

// Describe prints the topology as text: what each sub-topology reads, does and
// writes, its stores and internal topics. A definition with mistakes is
// described by its errors. Keep the text with a release to have the next one
// checked against it; see CheckUpgrade.
func (a *App) Describe() string {
	t, err := a.Topology()
	if err != nil {
		return err.Error()
	}
	return t.Text
}

// CheckUpgrade compares this application with the description of an older
// release, as Describe printed it, and refuses an upgrade that would silently
// lose or misread state: a store or repartition topic that changed its name, a
// store whose rows changed their type or window size.
func (a *App) CheckUpgrade(old string) error {
	t, err := a.Topology()
	if err != nil {
		return err
	}
	return topology.CheckUpgrade(old, t.Text)
}

// collect reads the options of a node; mistakes are kept for Topology.
func (a *App) collect(what string, opts []Opt, allowed string) options {
	o, err := collect(opts, allowed)
	if err != nil {
		a.errs = append(a.errs, fmt.Errorf("%s: %w", what, err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sealed && a.err == nil {
		a.err = fmt.Errorf("application %s: %s was added after the topology had been built; it would not run", a.id, what)
	}
	return o
}

// handler is the error handler of a node with these options.
func (a *App) handler(o options) task.Handler {
	if o.onError != nil {
		return o.onError
	}
	return a.onError
}

func typeName[T any]() string { return reflect.TypeFor[T]().String() }

// pair prints the types of a node's records.
func pair[K, V any]() string { return "(" + typeName[K]() + ", " + typeName[V]() + ")" }
