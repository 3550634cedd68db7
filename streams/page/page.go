// Package page shows a running application to people: its topology drawn, what
// flows through it, how far behind it is, its stores, restores, workers and tasks,
// and what it leaves out, in a page that refreshes itself and needs nothing from
// the network.
//
//	err := app.Run(ctx, cluster, page.Serve("127.0.0.1:8080"))
//
// or, to mount it in a server of one's own,
//
//	var w streams.Watcher
//	mux.Handle("/streams/", http.StripPrefix("/streams", page.New(&w)))
//	err := app.Run(ctx, cluster, streams.Watch(&w))
//
// Beside the page there are /figures.json, what the page shows as data;
// /topology.json, .svg, .mmd and .dot; /metrics for Prometheus; and /healthz, which
// is 200 as long as the application works, with its state.
//
// The page shows names of topics and stores, and counts; no keys and no values. It
// has no access control of its own: listen where only those reach it who may see
// that, or put it behind one's own.
package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/metrics"
)

// Option changes a page.
type Option func(*settings)

type settings struct {
	mounted []mount
	onAddr  func(net.Addr)
}

type mount struct {
	pattern string
	handler http.Handler
}

// Mount adds a handler beside the page, as http.ServeMux's Handle does.
func Mount(pattern string, h http.Handler) Option {
	return func(s *settings) { s.mounted = append(s.mounted, mount{pattern, h}) }
}

// OnAddr is told the address that Serve listens on: with port 0 it is not known
// before.
func OnAddr(f func(net.Addr)) Option { return func(s *settings) { s.onAddr = f } }

// New makes the handler of a page about what a watcher sees.
func New(w *streams.Watcher, opts ...Option) http.Handler { return collect(opts).handler(w) }

func collect(opts []Option) settings {
	var s settings
	for _, o := range opts {
		o(&s)
	}
	return s
}

func (s settings) handler(w *streams.Watcher) http.Handler {
	p := page{w}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.html)
	mux.HandleFunc("GET /figures.json", p.figures)
	for _, form := range []string{"json", "svg", "mmd", "dot"} {
		mux.HandleFunc("GET /topology."+form, p.topology(form))
	}
	mux.HandleFunc("GET /healthz", p.health)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.New(w), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	for _, m := range s.mounted {
		mux.Handle(m.pattern, m.handler)
	}
	return mux
}

// Serve listens on an address, host:port, for as long as the application runs.
// Without a host it listens on all interfaces; port 0 is any free one.
func Serve(addr string, opts ...Option) streams.RunOpt {
	return func(o *runtime.Options) {
		w, s, log := new(streams.Watcher), collect(opts), func() runtime.Options { return *o }
		streams.Watch(w)(o)
		o.Beside = append(o.Beside, func(context.Context) (func(), error) {
			ln, err := net.Listen("tcp", addr)
			if err != nil {
				return nil, fmt.Errorf("page on %s: %w", addr, err)
			}
			if s.onAddr != nil {
				s.onAddr(ln.Addr())
			}
			logger := log().Logger
			if logger != nil {
				logger.Info("page of the application", "address", "http://"+ln.Addr().String())
			}
			server := &http.Server{Handler: s.handler(w), ReadHeaderTimeout: 5 * time.Second}
			done := make(chan error, 1)
			go func() { done <- server.Serve(ln) }()
			return func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				err := server.Shutdown(ctx)
				if served := <-done; !errors.Is(served, http.ErrServerClosed) {
					err = errors.Join(err, served)
				}
				if err != nil && logger != nil {
					logger.Warn("page of the application", "error", err)
				}
			}, nil
		})
	}
}

type page struct{ w *streams.Watcher }

func (p page) figures(w http.ResponseWriter, _ *http.Request) {
	f, ok := p.w.Figures()
	if !ok {
		http.Error(w, "the application has not started", http.StatusServiceUnavailable)
		return
	}
	var all runtime.Histogram
	for _, worker := range f.Workers {
		for _, t := range worker.Tasks {
			all.Merge(t.Latency)
		}
	}
	answer(w, http.StatusOK, struct {
		streams.Figures
		Latencies latencies `json:"latencies"`
	}{f, latencies{all.Quantile(.5), all.Quantile(.99)}})
}

// latencies are those of all tasks together since they began, in seconds.
type latencies struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// topology answers with a drawing.
func (p page) topology(form string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		picture, ok := p.w.Picture()
		if !ok {
			http.Error(w, "the application has not started", http.StatusServiceUnavailable)
			return
		}
		switch form {
		case "json":
			answer(w, http.StatusOK, picture)
		case "svg":
			write(w, "image/svg+xml", standalone(picture))
		case "mmd":
			write(w, "text/plain; charset=utf-8", picture.Mermaid())
		default:
			write(w, "text/vnd.graphviz; charset=utf-8", picture.DOT())
		}
	}
}

// health is 200 while the application works: a restart of one that is rebalancing
// would only make it longer.
func (p page) health(w http.ResponseWriter, _ *http.Request) {
	f, ok := p.w.Figures()
	status, code := "ok", http.StatusOK
	if !ok || f.State == runtime.JobFailed || f.State == runtime.JobStopped {
		status, code = "down", http.StatusServiceUnavailable
	}
	answer(w, code, struct {
		Status string        `json:"status"`
		State  streams.State `json:"state"`
	}{status, f.State})
}

func answer(w http.ResponseWriter, code int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	w.Write(append(raw, '\n')) // a client that went away does not matter
}

func write(w http.ResponseWriter, contentType, text string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Write([]byte(text)) // as above
}
