// Package metrics shows running applications to Prometheus: per worker, task, node
// and store.
//
//	err := app.Run(ctx, cluster, metrics.To(prometheus.DefaultRegisterer))
//
// or, where the collector is registered by hand,
//
//	var w streams.Watcher
//	registry.MustRegister(metrics.New(&w))
//	err := app.Run(ctx, cluster, streams.Watch(&w))
//
// A scrape reads the picture that the workers renew four times a second; it asks
// nobody and waits for nothing. Counters of a task begin anew where the task does:
// in another worker, or after a failure. Prometheus' rate takes that as a restart,
// which it is.
package metrics

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/runtime"
)

// New makes a collector of what a watcher sees. It is safe for concurrent use.
// Collectors of several applications can be in one registry.
func New(w *streams.Watcher) prometheus.Collector { return &collector{w: w} }

// To registers a collector, which shows the application as long as it runs.
func To(reg prometheus.Registerer) streams.RunOpt {
	return func(o *runtime.Options) {
		w := new(streams.Watcher)
		streams.Watch(w)(o)
		o.Beside = append(o.Beside, func(context.Context) (func(), error) {
			c := &collector{w: w}
			if err := reg.Register(c); err != nil {
				return nil, fmt.Errorf("metrics: %w", err)
			}
			return func() { c.over.Store(true) }, nil
		})
	}
}

type collector struct {
	w *streams.Watcher
	// over: the run has ended. A registry does not let an unchecked collector go,
	// so it stays there and says nothing.
	over atomic.Bool
}

// Describe implements prometheus.Collector. It tells of nothing, which makes the
// collector an unchecked one: which applications, tasks and nodes there will be is
// not known before they run.
func (*collector) Describe(chan<- *prometheus.Desc) {}

// metric is one line of the table below.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("millrace_streams_"+name, help, append([]string{"app"}, labels...), nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) metric {
	m := gauge(name, help, labels...)
	m.kind = prometheus.CounterValue
	return m
}

// The labels of what belongs to a task, before those of its parts.
var ofTask = []string{"worker", "sub_topology", "partition"}

var (
	workers     = gauge("worker_state", "1 for the state that a worker is in.", "worker", "state")
	processed   = counter("worker_records_total", "Records whose results are committed.", "worker")
	emitted     = counter("worker_emitted_total", "Records that were sent and committed, those of changelogs included.", "worker")
	commits     = counter("worker_commits_total", "Commits.", "worker")
	startedOver = counter("worker_started_over_total", "Times that a worker went back to its last commit.", "worker")
	committing  = gauge("commit_seconds", "How long commits took.", "worker")

	taskRecords  = counter("task_records_total", "Records that a task has processed, committed or not.", ofTask...)
	taskEmitted  = counter("task_emitted_total", "Records that a task has sent, those of changelogs not included.", ofTask...)
	taskBusy     = counter("task_busy_seconds_total", "Time that a task took; its rate is the share of one core.", ofTask...)
	taskTime     = gauge("task_stream_time_seconds", "Stream time of a task, as a Unix time.", ofTask...)
	taskLateness = gauge("record_lateness_seconds", "How far records that came out of order were behind stream time.", ofTask...)
	taskLatency  = gauge("end_to_end_latency_seconds", "From a record's timestamp to the commit that made its results visible, of a sample.", ofTask...)

	inputLag      = gauge("input_lag_records", "Offsets that are left to read of a partition.", append(ofTask, "topic")...)
	inputPosition = gauge("input_position", "Offset of the next record to process of a partition.", append(ofTask, "topic")...)

	nodeRecords = counter("node_records_total", "Records that a node has taken.", append(ofTask, "node")...)
	nodeDropped = counter("node_dropped_total", "Records that a node has left out, by reason.", append(ofTask, "node", "reason")...)

	storeRows        = gauge("store_rows", "Rows of a store, where its engine counts them.", append(ofTask, "store")...)
	storeBytes       = gauge("store_bytes", "Bytes of a store, on disk or in memory.", append(ofTask, "store")...)
	storeUncommitted = gauge("store_uncommitted_bytes", "Bytes of a store that wait for the commit.", append(ofTask, "store")...)

	globalRows  = gauge("global_table_rows", "Rows of a worker's copy of a global table.", "worker", "table")
	globalBytes = gauge("global_table_bytes", "Bytes of a worker's copy of a global table.", "worker", "table")

	restoreLeft = gauge("restore_remaining_records", "Offsets that are left to read until a store is complete.", "worker", "store", "partition")
	standbyLag  = gauge("standby_lag_records", "Offsets that a copy of a store is behind its changelog.", "worker", "store", "partition")
)

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	f, ok := c.w.Figures()
	if !ok || c.over.Load() {
		return
	}
	s := scrape{ch, f.App}
	for _, w := range f.Workers {
		s.worker(w)
	}
	for _, r := range f.Restores {
		m := restoreLeft
		if r.Copy {
			m = standbyLag
		}
		s.out(m, float64(r.Remaining), strconv.Itoa(r.Worker), r.Store, strconv.Itoa(int(r.Partition)))
	}
}

// scrape is one answer.
type scrape struct {
	ch  chan<- prometheus.Metric
	app string
}

func (s scrape) out(m metric, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, append([]string{s.app}, labels...)...)
}

func (s scrape) histogram(m metric, h runtime.Histogram, labels ...string) {
	buckets, n := map[float64]uint64{}, uint64(0)
	for i, bound := range runtime.HistogramBounds {
		n += uint64(h.Buckets[i])
		buckets[bound] = n
	}
	s.ch <- prometheus.MustNewConstHistogram(m.desc, uint64(h.Count), h.Sum, buckets, append([]string{s.app}, labels...)...)
}

func (s scrape) worker(w runtime.WorkerFigures) {
	n := strconv.Itoa(w.Worker)
	s.out(workers, 1, n, string(w.State))
	s.out(processed, float64(w.Processed), n)
	s.out(emitted, float64(w.Emitted), n)
	s.out(commits, float64(w.Commits), n)
	s.out(startedOver, float64(w.StartedOver), n)
	s.histogram(committing, w.Committing, n)
	for _, t := range w.Tasks {
		s.task(n, t)
	}
	for _, g := range w.Globals {
		s.out(globalRows, float64(g.Rows), n, g.Table)
		s.out(globalBytes, float64(g.Bytes), n, g.Table)
	}
}

func (s scrape) task(worker string, t runtime.TaskFigures) {
	at := []string{worker, t.Sub, strconv.Itoa(int(t.Partition))}
	with := func(more ...string) []string { return append(append([]string{}, at...), more...) }
	s.out(taskRecords, float64(t.Processed), at...)
	s.out(taskEmitted, float64(t.Emitted), at...)
	s.out(taskBusy, t.Busy, at...)
	if t.StreamMs >= 0 {
		s.out(taskTime, float64(t.StreamMs)/1000, at...)
	}
	s.histogram(taskLateness, t.Lateness, at...)
	s.histogram(taskLatency, t.Latency, at...)
	for _, in := range t.Inputs {
		s.out(inputLag, float64(in.Lag()), with(in.Topic)...)
		s.out(inputPosition, float64(in.Position), with(in.Topic)...)
	}
	for _, node := range t.Nodes {
		s.out(nodeRecords, float64(node.Records), with(node.Node)...)
	}
	for _, d := range runtime.Sum(t.Dropped) {
		s.out(nodeDropped, float64(d.N), with(d.Node, d.Reason)...)
	}
	for _, st := range t.Stores {
		if st.Rows >= 0 {
			s.out(storeRows, float64(st.Rows), with(st.Store)...)
		}
		if st.Bytes >= 0 {
			s.out(storeBytes, float64(st.Bytes), with(st.Store)...)
		}
		s.out(storeUncommitted, float64(st.Uncommitted), with(st.Store)...)
	}
}
