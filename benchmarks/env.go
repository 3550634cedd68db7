package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// env is what a workload gets: where the cluster is, how long to run, and where results go.
type env struct {
	broker  *process // nil when measuring a cluster by address
	seeds   []string
	seconds time.Duration // length of each timed workload
	out     io.Writer     // where figures are shown as they come
	figures []figure
}

// more adds a figure of which more is better, less one of which less is better.
func (e *env) more(name string, value float64, unit string) { e.add(figure{name, unit, value, false}) }
func (e *env) less(name string, value float64, unit string) { e.add(figure{name, unit, value, true}) }

func (e *env) add(f figure) {
	e.figures = append(e.figures, f)
	fmt.Fprintf(e.out, "%-62s %s\n", f.name, format(f.value, f.unit))
}

// cpuPer adds the broker's processor time per operation since before.
func (e *env) cpuPer(what string, before time.Duration, operations float64) {
	if e.broker == nil || operations == 0 {
		return
	}
	e.less(what, float64((e.broker.cpu()-before).Nanoseconds())/operations/1000, "µs")
}

func (e *env) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(e.seeds...)}, opts...)...)
}

// synced makes Kafka write each append to the disk before it answers; our broker does that anyway.
var synced = map[string]*string{"flush.messages": kadm.StringPtr("1")}

// topic creates a fresh topic and returns its name.
func (e *env) topic(ctx context.Context, what string, partitions int32, config map[string]*string) (string, error) {
	cl, err := e.client()
	if err != nil {
		return "", err
	}
	defer cl.Close()
	name := fmt.Sprintf("bench-%s-%d", what, time.Now().UnixNano())
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, config, name)
	return name, err
}
