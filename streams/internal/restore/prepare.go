package restore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// Prepare decides for each job whether its image can be continued, and empties
// it if not. A job may be prepared again after it left its Set.
func Prepare(ctx context.Context, cluster *session.Cluster, jobs []*Job, log *slog.Logger) error {
	parts := make([]session.TopicPartition, len(jobs))
	for i, j := range jobs {
		parts[i] = j.Part
	}
	starts, err := cluster.List(ctx, session.Start, parts)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		j.start = starts[j.Part]
		if err := j.prepare(ctx, cluster); err != nil {
			return err
		}
		if j.Rebuilt != "" {
			log.Warn("store is rebuilt from its changelog", "store", j.Name, "topic", j.Part.Topic, "partition", j.Part.Partition, "reason", j.Rebuilt)
		}
	}
	return nil
}

func (j *Job) prepare(ctx context.Context, cluster *session.Cluster) error {
	j.Rebuilt = ""
	if p := j.Image.Position(); p.Known() {
		why, err := j.misfit(ctx, cluster, p)
		if err != nil {
			return err
		}
		if why != "" {
			if err := j.Image.Wipe(); err != nil {
				return err
			}
			j.Rebuilt = why
		}
	}
	options := j.Options
	options.Name = j.Name
	if j.Follow {
		// A copy takes in many small pieces; what is not on disk yet costs a
		// short read of the changelog after a crash, a sync for each would cost
		// more.
		options.FlushCommits = maxCommits
	}
	j.Overlay = state.NewOverlay(j.Image, options)
	return nil
}

// maxCommits is as good as never: the size of what waits decides.
const maxCommits = 1 << 30

// misfit says why the position does not belong to the log, "" when it does.
func (j *Job) misfit(ctx context.Context, cluster *session.Cluster, p state.Position) (string, error) {
	switch {
	case p.TopicID != j.TopicID:
		return "the topic was deleted and made anew", nil
	case p.Next > j.End:
		return fmt.Sprintf("the log ends at %d, before the store's position %d", j.End, p.Next), nil
	case p.Next < j.start:
		return fmt.Sprintf("the log starts at %d, after the store's position %d", j.start, p.Next), nil
	case j.Tombstones > 0 && p.Next < j.End && age(p) > j.Tombstones:
		return fmt.Sprintf("the store is older than the tombstones of the log, which are kept for %v", j.Tombstones), nil
	case p.LeaderEpoch < 0:
		return "", nil
	}
	end, err := cluster.EpochEnd(ctx, j.Part, p.LeaderEpoch)
	if err != nil {
		return "", err
	}
	if end < p.Next {
		return fmt.Sprintf("epoch %d of the log ended at %d, before the store's position %d", p.LeaderEpoch, end, p.Next), nil
	}
	return "", nil
}

func age(p state.Position) time.Duration { return time.Since(time.UnixMilli(p.TimeMs)) }
