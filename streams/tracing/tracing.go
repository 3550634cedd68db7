// Package tracing follows records through applications with OpenTelemetry: a span
// for each record that a task processes, joined to whoever sent the record by its
// headers (W3C Trace Context: traceparent, tracestate), and carried on by the headers
// of all that the task sends for it: to topics of others, to repartition topics,
// where the next task goes on with it, and to dead letters.
//
//	err := app.Run(ctx, cluster, tracing.With(provider))
//
// Functions of the topology that get a context find the span in it, with
// trace.SpanFromContext, and may add to it or begin spans below it.
//
// What timers and closed windows send belongs to the record at whose time they were
// called, if there is one; by the wall clock there is none. A span ends when the
// record is processed, not when the transaction commits. Applications that run
// without With pay nothing.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
)

// Option changes how records are followed.
type Option func(*tracer)

// OnlyTraced follows records that come with a trace and begins none. Without it
// each record without one begins a trace, as far as the provider's sampler lets it.
func OnlyTraced() Option { return func(t *tracer) { t.onlyTraced = true } }

// Propagator replaces W3C Trace Context as the form of the headers.
func Propagator(p propagation.TextMapPropagator) Option { return func(t *tracer) { t.form = p } }

// With follows the records of a run.
func With(p trace.TracerProvider, opts ...Option) streams.RunOpt {
	return func(o *runtime.Options) {
		t := &tracer{spans: p.Tracer("github.com/millrace/millrace/streams"), form: propagation.TraceContext{}}
		for _, opt := range opts {
			opt(t)
		}
		o.Tracer = t
	}
}

// tracer implements runtime.Tracer. It does not change once the run has begun.
type tracer struct {
	spans      trace.Tracer
	form       propagation.TextMapPropagator
	onlyTraced bool
}

// Begin implements runtime.Tracer.
func (t *tracer) Begin(ctx context.Context, r *task.Record) context.Context {
	ctx = t.form.Extract(ctx, &carrier{r.Headers})
	if t.onlyTraced && !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	ctx, _ = t.spans.Start(ctx, "process "+r.Topic, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", r.Topic),
		attribute.Int("messaging.destination.partition.id", int(r.Partition)),
		attribute.Int64("messaging.kafka.offset", r.Offset),
	))
	return ctx
}

// End implements runtime.Tracer.
func (t *tracer) End(ctx context.Context, err error) {
	span := trace.SpanFromContext(ctx)
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "the record could not be processed")
	}
	span.End() // of nobody's, it does nothing
}

// Carry implements runtime.Tracer: headers of the trace that came in with the record
// give way to those of the span.
func (t *tracer) Carry(ctx context.Context, h []task.Header) []task.Header {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return h
	}
	c := &carrier{append(make([]task.Header, 0, len(h)+2), h...)}
	t.form.Inject(ctx, c)
	return c.headers
}

// carrier is headers as a propagator sees them.
type carrier struct{ headers []task.Header }

// Get implements propagation.TextMapCarrier. The last of several counts.
func (c *carrier) Get(key string) (value string) {
	for _, h := range c.headers {
		if h.Key == key {
			value = string(h.Value)
		}
	}
	return value
}

// Set implements propagation.TextMapCarrier.
func (c *carrier) Set(key, value string) {
	kept := c.headers[:0]
	for _, h := range c.headers {
		if h.Key != key {
			kept = append(kept, h)
		}
	}
	c.headers = append(kept, task.Header{Key: key, Value: []byte(value)})
}

// Keys implements propagation.TextMapCarrier.
func (c *carrier) Keys() []string {
	var keys []string
	for _, h := range c.headers {
		keys = append(keys, h.Key)
	}
	return keys
}
