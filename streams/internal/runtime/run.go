package runtime

import (
	"context"
	"errors"

	"github.com/millrace/millrace/streams/internal/topology"
)

// Run runs an application until ctx ends, then commits and stops; that is no
// error. Otherwise it returns what ended it.
func Run(ctx context.Context, app *topology.Topology, cluster Cluster, options Options) error {
	j, err := Start(ctx, app, cluster, options)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	return j.Wait()
}
