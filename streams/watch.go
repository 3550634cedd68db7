package streams

import (
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
)

// Watcher reads what an application is doing in this process: its workers and
// tasks, what each node has taken and left out, lags, stores, restores, and how
// long commits take. Its method Figures may be called at any time from any
// goroutine; the picture is renewed four times a second. The zero value watches
// nothing until it is given to Run or Start with Watch:
//
//	var w streams.Watcher
//	go app.Run(ctx, cluster, streams.Watch(&w))
//	figures, ok := w.Figures()
//
// Package streams/metrics shows a Watcher to Prometheus, package streams/page to
// people.
type Watcher = runtime.Watcher

// Figures is what a Watcher sees.
type Figures = runtime.Figures

// Watch lets w see the run. Without a watcher nothing is measured.
func Watch(w *Watcher) RunOpt {
	return func(o *runtime.Options) { o.Watchers = append(o.Watchers, w) }
}

// Wrapper is called around the work of a node on one record and all that follows
// from it. It calls next once and returns its error. The context is that of the
// node's task.
type Wrapper = task.Wrapper

// WrapNodes asks f for each node of each task what is to be called around it, nil for
// nothing: to trace, to time, to log the work of nodes (KIP-1112). Without it
// nothing stands between the nodes. What a Wrapper does counts as the
// framework's, not as the topology's: a panic in it ends the worker.
func WrapNodes(f func(node string) Wrapper) RunOpt {
	return func(o *runtime.Options) { o.Around = f }
}
