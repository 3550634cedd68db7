package runtime

import (
	"context"
	"fmt"
	"maps"

	"github.com/millrace/millrace/txn/session"
)

// Drain processes what lies in the inputs now, through all repartition topics to the
// end, commits, and stops. What comes later is left for the next run. If other
// processes run the application too, each answers for its own tasks.
//
// When ctx ends before that, the job goes on to work towards the same ends: drain
// once more, or close.
func (j *Job) Drain(ctx context.Context) error {
	j.goals.Lock()
	defer j.goals.Unlock()
	c, err := session.Connect(ctx, j.run.clusterOptions(j.run.app.AppID+"-drain"))
	if err != nil {
		return j.ended(err)
	}
	defer c.Close()
	outside, inside := j.run.planned().partitions()
	_, g, _ := j.control.wishes()
	if g == nil {
		stops, err := c.List(ctx, session.StableEnd, outside)
		if err != nil {
			return j.ended(err)
		}
		g = &goal{stops: stops, ends: stops}
	}
	// A record passes each repartition topic at most once on its way. So this many
	// rounds are enough even if others keep writing to them.
	for round := range len(j.run.app.Internal) + 2 {
		g = &goal{number: g.number + 1, stops: g.stops, ends: maps.Clone(g.ends)}
		before := maps.Clone(g.ends)
		more, err := c.List(ctx, session.StableEnd, inside)
		if err != nil {
			return j.ended(err)
		}
		maps.Copy(g.ends, more)
		if round > 0 && maps.Equal(before, g.ends) {
			break // nothing has come out of the last round
		}
		if err := j.reach(ctx, g); err != nil {
			return fmt.Errorf("streams: drain: %w", err)
		}
	}
	j.cancel()
	return j.Wait()
}

// ended prefers what ended the job to an error that may have come of it.
func (j *Job) ended(err error) error {
	select {
	case <-j.done:
		if j.err != nil {
			return j.err
		}
		return ErrEnded
	default:
		return fmt.Errorf("streams: drain: %w", err)
	}
}

// reach sets a goal and waits until all workers are there, in one generation of the
// group, so that no task is on its way from one to another.
func (j *Job) reach(ctx context.Context, g *goal) error {
	j.control.ask(func(c *control) { c.goal = g })
	return j.await(ctx, func(_ JobState, workers []WorkerStatus) bool {
		for _, w := range workers {
			if w.State != Running || w.reached != g.number || w.generation != workers[0].generation {
				return false
			}
		}
		return len(workers) > 0
	})
}

// partitions lists all partitions that are read, those of other people's topics and
// those of the application's own.
func (p *plan) partitions() (outside, inside []session.TopicPartition) {
	for _, topic := range p.sources {
		for n := range p.topics[topic].Partitions {
			part := session.TopicPartition{Topic: topic, Partition: int32(n)}
			if p.internal(topic) {
				inside = append(inside, part)
			} else {
				outside = append(outside, part)
			}
		}
	}
	return outside, inside
}
