package runtime

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/streams/internal/topology"
)

// Run runs an application until ctx ends, then commits and stops; that is no
// error. Otherwise it returns what ended it.
func Run(ctx context.Context, app *topology.Topology, cluster Cluster, options Options) error {
	if err := options.Validate(); err != nil {
		return err
	}
	if app.AppID == "" {
		return errors.New("streams: the application has no id")
	}
	options = options.withDefaults()
	r := &run{app: app, cluster: cluster, options: options, log: options.Logger}
	if err := r.identify(); err != nil {
		return err
	}
	if r.folder != nil {
		defer r.closeFolder()
	}
	var err error
	if r.admin, err = r.adminClient(); err != nil {
		return err
	}
	defer r.admin.Close()
	p, err := r.prepare(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return r.work(ctx, p)
}

// work runs the workers; the first that fails stops the others.
func (r *run) work(ctx context.Context, p *plan) error {
	group, ctx := errgroup.WithContext(ctx)
	for n := range r.options.Workers {
		group.Go(func() error {
			w, err := newWorker(ctx, n, p, r)
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			return w.run(ctx)
		})
	}
	return group.Wait()
}
