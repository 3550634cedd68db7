package restore

import (
	"context"
	"log/slog"

	"github.com/millrace/millrace/txn/session"
)

// Run brings every job's store to its end. When ctx ends first the stores are
// usable for a later restore; the images stay the caller's to close.
func Run(ctx context.Context, cluster *session.Cluster, jobs []*Job, log *slog.Logger) error {
	if len(jobs) == 0 {
		return nil
	}
	if err := Prepare(ctx, cluster, jobs, log); err != nil {
		return err
	}
	set := NewSet(cluster)
	defer set.Close()
	for _, j := range jobs {
		set.Add(j)
	}
	for {
		more := set.Step()
		open := 0
		for _, j := range jobs {
			if j.err != nil {
				return j.err
			}
			if !j.done {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			for _, j := range jobs {
				if err := set.Remove(j); err != nil {
					return err
				}
			}
			return ctx.Err()
		case <-set.Arrived():
		}
	}
}
