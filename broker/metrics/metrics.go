// Package metrics shows a broker to Prometheus: a collector that reads the broker's figures when it is asked, so that a broker
// nobody asks does nothing for it.
//
//	registry := prometheus.NewRegistry()
//	registry.MustRegister(metrics.New(b))
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// Figures of topics are sums over their partitions: a label per partition would be ten thousand series on a broker with as many. What
// is wrong has labels down to the partition, as there is little of it.
package metrics

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/broker"
)

// patience bounds how long a scrape waits for the coordinators, which load when the broker has just started.
const patience = 2 * time.Second

// Source is what the collector reads; a *broker.Broker is one.
type Source interface {
	Partitions() []broker.PartitionFigures
	Offline() map[string]string
	Cleaning() broker.Cleaning
	Scrubbing() broker.Scrubbing
	Requests() map[string]int64
	Connections() int
	Transactions(context.Context) (broker.TransactionFigures, error)
}

// New makes a collector of one broker. It is safe for concurrent use.
func New(s Source) prometheus.Collector { return collector{s} }

type collector struct{ source Source }

// metric is one line of the table below.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("millrace_"+name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc("millrace_"+name, help, labels, nil), prometheus.CounterValue}
}

var (
	connections = gauge("connections", "Open connections of clients.")
	requests    = counter("requests_total", "Requests that came in, by API.", "api")

	partitions = gauge("partitions", "Partitions that are served.")
	offline    = gauge("partition_offline", "1 for each partition that can not be served; the reason is in the log and in the label.", "partition", "reason")
	logBytes   = gauge("log_bytes", "Bytes of batches on disk, by topic.", "topic")
	segments   = gauge("log_segments", "Segments, by topic.", "topic")
	written    = counter("log_end_offset_total", "Log end offsets, summed over the partitions of a topic: its rate is records per second.", "topic")
	unsafe     = gauge("log_unacknowledged_records", "Records behind the high watermark, by topic: written, not yet acknowledged.", "topic")
	unstable   = gauge("log_unstable_records", "Records between last stable offset and high watermark, by topic: behind an open transaction.", "topic")

	ongoing   = gauge("transactions_ongoing", "Open transactions of the coordinators.")
	ending    = gauge("transactions_ending", "Decided transactions whose markers are on their way.")
	oldest    = gauge("transactions_ongoing_oldest_seconds", "Age of the oldest open transaction.")
	undecided = gauge("transactions_undecided", "Open transactions without a timeout, which only their two-phase commit ends.")
	waiting   = gauge("transactions_undecided_oldest_seconds", "Age of the oldest of them.")
	hanging   = gauge("transactions_hanging", "Transactions open in a partition that nobody will end, by topic.", "topic")

	retained    = counter("retention_bytes_total", "Bytes removed by age or size.")
	compactions = counter("compactions_total", "Partitions compacted.")
	compactIn   = counter("compaction_read_bytes_total", "Bytes that compaction has read.")
	compactOut  = counter("compaction_kept_bytes_total", "Bytes that compaction has kept.")
	dirty       = gauge("compaction_dirty_ratio_max", "Share not yet compacted of the dirtiest partition, at the last round.")
	failures    = counter("cleaning_failures_total", "Rounds of retention or compaction that failed.")
	failing     = gauge("cleaning_failing", "1 for each partition that could not be cleaned in its last round.", "partition")
	pinned      = gauge("retention_pinned", "1 for each partition whose oldest segment is kept only by a record dated in the future.", "partition")
	expired     = counter("producers_expired_total", "Idempotent producers forgotten because they were quiet.")

	scrubbed = counter("scrub_bytes_total", "Bytes of old segments that were read again in search of damage.")
	rounds   = counter("scrub_rounds_total", "Rounds of that search over all partitions.")
	damaged  = gauge("scrub_damaged_batches", "Batches that are not as they were written any more, by partition; they are served no more.", "partition")
	blocked  = gauge("scrub_failing", "1 for each partition that the search could not read to its end.", "partition")

	up = gauge("coordinators_up", "1 when the transaction coordinators answered this scrape.")
)

var all = []metric{
	connections, requests, partitions, offline, logBytes, segments, written, unsafe, unstable,
	ongoing, ending, oldest, undecided, waiting, hanging,
	retained, compactions, compactIn, compactOut, dirty, failures, failing, pinned, expired,
	scrubbed, rounds, damaged, blocked, up,
}

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range all {
		ch <- m.desc
	}
}

// out sends one value.
func (m metric) out(ch chan<- prometheus.Metric, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	connections.out(ch, float64(c.source.Connections()))
	for api, n := range sorted(c.source.Requests()) {
		requests.out(ch, float64(n), api)
	}
	for name, reason := range sorted(c.source.Offline()) {
		offline.out(ch, 1, name, reason)
	}
	c.logs(ch)
	c.transactions(ch)
	c.cleaning(ch)
	c.scrubbing(ch)
}

// logs sums the partitions by topic.
func (c collector) logs(ch chan<- prometheus.Metric) {
	type sum struct{ bytes, segments, end, unsafe, unstable int64 }
	topics := map[string]*sum{}
	all := c.source.Partitions()
	for _, p := range all {
		t := topics[p.Topic]
		if t == nil {
			t = &sum{}
			topics[p.Topic] = t
		}
		t.bytes += p.Bytes
		t.segments += int64(p.Segments)
		t.end += p.LogEnd
		t.unsafe += max(p.LogEnd-p.HighWatermark, 0)
		t.unstable += max(p.HighWatermark-p.LastStable, 0)
	}
	partitions.out(ch, float64(len(all)))
	for name, t := range sorted(topics) {
		logBytes.out(ch, float64(t.bytes), name)
		segments.out(ch, float64(t.segments), name)
		written.out(ch, float64(t.end), name)
		unsafe.out(ch, float64(t.unsafe), name)
		unstable.out(ch, float64(t.unstable), name)
	}
}

func (c collector) transactions(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f, err := c.source.Transactions(ctx)
	if err != nil {
		up.out(ch, 0)
		return
	}
	up.out(ch, 1)
	ongoing.out(ch, float64(f.Ongoing))
	ending.out(ch, float64(f.Ending))
	oldest.out(ch, f.OldestOngoing.Seconds())
	undecided.out(ch, float64(len(f.Undecided)))
	var age time.Duration
	for _, o := range f.Undecided {
		age = max(age, time.Since(o.Began))
	}
	waiting.out(ch, age.Seconds())
	count := map[string]int{}
	for _, o := range f.Hanging {
		count[o.Topic]++
	}
	for topic, n := range sorted(count) {
		hanging.out(ch, float64(n), topic)
	}
}

func (c collector) cleaning(ch chan<- prometheus.Metric) {
	s := c.source.Cleaning()
	retained.out(ch, float64(s.RetainedBytes))
	compactions.out(ch, float64(s.Compactions))
	compactIn.out(ch, float64(s.CompactedBytesIn))
	compactOut.out(ch, float64(s.CompactedBytesOut))
	dirty.out(ch, s.MaxDirtyRatio)
	failures.out(ch, float64(s.Failures))
	expired.out(ch, float64(s.ExpiredProducers))
	for name := range sorted(s.Failing) {
		failing.out(ch, 1, name)
	}
	for name := range sorted(s.Pinned) {
		pinned.out(ch, 1, name)
	}
}

func (c collector) scrubbing(ch chan<- prometheus.Metric) {
	s := c.source.Scrubbing()
	scrubbed.out(ch, float64(s.Bytes))
	rounds.out(ch, float64(s.Rounds))
	for name, batches := range sorted(s.Damaged) {
		damaged.out(ch, float64(len(batches)), name)
	}
	for name := range sorted(s.Failing) {
		blocked.out(ch, 1, name)
	}
}

// sorted ranges over a map in the order of its keys.
func sorted[V any](m map[string]V) func(yield func(string, V) bool) {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
