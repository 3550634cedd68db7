package main

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

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/metrics"
)

// metricsPage serves what a monitoring system asks for, on an address of its own so that it can be kept from clients.
type metricsPage struct {
	http http.Server
	net  net.Listener
	done chan error
}

// serveMetrics answers GET /metrics in Prometheus' format and GET /healthz. It runs until close.
func serveMetrics(addr string, b *broker.Broker) (*metricsPage, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics on %s: %w", addr, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.New(b), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { health(w, b) })
	p := &metricsPage{net: ln, done: make(chan error, 1)}
	p.http = http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { p.done <- p.http.Serve(ln) }()
	return p, nil
}

// health is 200 as long as the broker answers at all: a partition that is offline is named, but to restart a broker because of one
// would take all others with it.
func health(w http.ResponseWriter, b *broker.Broker) {
	w.Header().Set("Content-Type", "application/json")
	raw, err := json.Marshal(struct {
		Status  string            `json:"status"`
		Offline map[string]string `json:"offline"`
	}{"ok", b.Offline()})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(append(raw, '\n')) // a client that went away does not matter
}

func (p *metricsPage) addr() string { return p.net.Addr().String() }

// close lets answers under way leave for a second.
func (p *metricsPage) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := p.http.Shutdown(ctx)
	if served := <-p.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
