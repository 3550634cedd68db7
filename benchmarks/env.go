package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// env is what a workload gets: where the cluster is, how long to run, and where results go.
type env struct {
	server  *server // nil when measuring a cluster by address
	seeds   []string
	seconds time.Duration // length of each timed workload
	rows    []row
}

type row struct{ what, figure string }

func (e *env) add(what, format string, args ...any) {
	r := row{what, fmt.Sprintf(format, args...)}
	e.rows = append(e.rows, r)
	fmt.Printf("%-58s %s\n", r.what, r.figure)
}

func (e *env) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(e.seeds...)}, opts...)...)
}

// topic creates a fresh topic and returns its name.
func (e *env) topic(ctx context.Context, what string, partitions int32) (string, error) {
	cl, err := e.client()
	if err != nil {
		return "", err
	}
	defer cl.Close()
	name := fmt.Sprintf("bench-%s-%d", what, time.Now().UnixNano())
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, nil, name)
	return name, err
}
