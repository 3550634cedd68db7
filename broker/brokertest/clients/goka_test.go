package clients

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/codec"
)

// TestGokaCountsPerKey runs a goka processor with a group table and a view: its consumer group, its compacted table
// topic and its recovery all on our broker.
func TestGokaCountsPerKey(t *testing.T) {
	eachWay(t, func(t *testing.T, seeds []string, config func() *sarama.Config) {
		const keys, each = 20, 50
		cfg := func() *sarama.Config {
			c := config()
			c.ChannelBufferSize = 256
			return c
		}
		createTopic(t, seeds, cfg(), "clicks", 4)
		tm := goka.NewTopicManagerConfig()
		tm.Table.Replication, tm.Stream.Replication = 1, 1
		tmb := goka.TopicManagerBuilderWithConfig(cfg(), tm)

		emitter, err := goka.NewEmitter(seeds, "clicks", new(codec.String), goka.WithEmitterTopicManagerBuilder(tmb),
			goka.WithEmitterProducerBuilder(goka.ProducerBuilderWithConfig(cfg())))
		must(t, err)
		for i := range keys * each {
			must(t, emitter.EmitSync(strconv.Itoa(i%keys), "click"))
		}
		must(t, emitter.Finish())

		group := goka.Group("counter")
		graph := goka.DefineGroup(group, goka.Input("clicks", new(codec.String), func(ctx goka.Context, _ any) {
			n, _ := ctx.Value().(int64) // nil before the first click
			ctx.SetValue(n + 1)
		}), goka.Persist(new(codec.Int64)))
		dir := t.TempDir()
		run := func(until func(*goka.View) bool) {
			p, err := goka.NewProcessor(seeds, graph, goka.WithTopicManagerBuilder(tmb), goka.WithStorageBuilder(storage(dir+"/p")),
				goka.WithConsumerGroupBuilder(goka.ConsumerGroupBuilderWithConfig(cfg())),
				goka.WithConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(cfg())), goka.WithProducerBuilder(goka.ProducerBuilderWithConfig(cfg())))
			must(t, err)
			v, err := goka.NewView(seeds, goka.GroupTable(group), new(codec.Int64), goka.WithViewTopicManagerBuilder(tmb),
				goka.WithViewStorageBuilder(storage(dir+"/v")), goka.WithViewConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(cfg())))
			must(t, err)
			ctx, stop := context.WithTimeout(context.Background(), patience)
			defer stop()
			ended := make(chan error, 2)
			go func() { ended <- p.Run(ctx) }()
			go func() { ended <- v.Run(ctx) }()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for !until(v) {
				select {
				case <-tick.C:
				case <-ctx.Done():
					t.Fatal("the counts never came")
				}
			}
			stop()
			for range 2 {
				if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		}
		counted := func(want int64) func(*goka.View) bool {
			return func(v *goka.View) bool {
				if !v.Recovered() {
					return false
				}
				for k := range keys {
					n, err := v.Get(strconv.Itoa(k))
					if err != nil || n == nil || n.(int64) < want {
						return false
					}
					if n.(int64) > want {
						t.Fatalf("key %d counted %d times, want %d", k, n, want)
					}
				}
				return true
			}
		}
		run(counted(each))
		// A second run recovers the table and goes on where the first one committed.
		run(counted(each))
	})
}
