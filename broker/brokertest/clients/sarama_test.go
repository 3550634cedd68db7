package clients

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/millrace/millrace/broker"
)

const patience = time.Minute // the end of a hang, no measurement

// inMemory lets Sarama reach the embedded broker without a socket.
type inMemory struct{ b *broker.Broker }

func (d inMemory) Dial(network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.b.Dial(ctx, network, addr)
}

// eachWay runs a test against a broker in memory and against one on a TCP port.
func eachWay(t *testing.T, f func(t *testing.T, seeds []string, cfg func() *sarama.Config)) {
	for _, way := range []string{"memory", "tcp"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			c := broker.Config{GroupInitialRebalanceDelay: time.Millisecond}
			if way == "tcp" {
				c.Listen = "127.0.0.1:0"
			}
			b, err := broker.Start(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
			seeds := b.Seeds()
			if way == "tcp" {
				seeds = []string{b.Addr().String()}
			}
			f(t, seeds, func() *sarama.Config {
				cfg := sarama.NewConfig()
				cfg.Version = sarama.MaxVersion
				cfg.Producer.Return.Successes = true
				cfg.Producer.RequiredAcks = sarama.WaitForAll
				cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
				cfg.Consumer.Return.Errors = true
				if way == "memory" {
					cfg.Net.Proxy.Enable = true
					cfg.Net.Proxy.Dialer = inMemory{b}
				}
				return cfg
			})
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func createTopic(t *testing.T, seeds []string, cfg *sarama.Config, topic string, partitions int32) {
	t.Helper()
	admin, err := sarama.NewClusterAdmin(seeds, cfg)
	must(t, err)
	must(t, admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false))
	topics, err := admin.ListTopics()
	must(t, err)
	if got := topics[topic].NumPartitions; got != partitions {
		t.Fatalf("topic has %d partitions, want %d", got, partitions)
	}
	must(t, admin.Close())
}

func TestSaramaIdempotentProducerKeepsOrder(t *testing.T) {
	eachWay(t, func(t *testing.T, seeds []string, config func() *sarama.Config) {
		const n = 5000
		createTopic(t, seeds, config(), "t", 1)
		cfg := config()
		cfg.Producer.Idempotent = true
		cfg.Net.MaxOpenRequests = 1
		cfg.Producer.Compression = sarama.CompressionLZ4
		p, err := sarama.NewAsyncProducer(seeds, cfg)
		must(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range n {
				p.Input() <- &sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(strconv.Itoa(i))}
			}
		})
		for range n {
			select {
			case <-p.Successes():
			case e := <-p.Errors():
				t.Fatal(e)
			}
		}
		wg.Wait()
		must(t, p.Close())

		c, err := sarama.NewConsumer(seeds, config())
		must(t, err)
		pc, err := c.ConsumePartition("t", 0, sarama.OffsetOldest)
		must(t, err)
		for i := range n {
			select {
			case m := <-pc.Messages():
				if m.Offset != int64(i) || string(m.Value) != strconv.Itoa(i) {
					t.Fatalf("offset %d holds %s, want %d", m.Offset, m.Value, i)
				}
			case err := <-pc.Errors():
				t.Fatal(err)
			case <-time.After(patience):
				t.Fatalf("no message %d", i)
			}
		}
		must(t, pc.Close())
		must(t, c.Close())
	})
}

// collector is a consumer-group handler that gathers values until it has enough.
type collector struct {
	mu   sync.Mutex
	got  []string
	want int
	done chan struct{}
	once sync.Once
}

func newCollector(want int) *collector { return &collector{want: want, done: make(chan struct{})} }

func (*collector) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*collector) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (c *collector) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			c.mu.Lock()
			c.got = append(c.got, string(m.Value))
			enough := len(c.got) >= c.want
			c.mu.Unlock()
			s.MarkMessage(m, "")
			if enough {
				c.once.Do(func() { close(c.done) })
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func TestSaramaGroupsShareAndGoOn(t *testing.T) {
	eachWay(t, func(t *testing.T, seeds []string, config func() *sarama.Config) {
		const n = 600
		createTopic(t, seeds, config(), "t", 6)
		p, err := sarama.NewSyncProducer(seeds, config())
		must(t, err)
		produce := func(from, to int) {
			for i := from; i < to; i++ {
				_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: "t", Key: sarama.StringEncoder(strconv.Itoa(i)), Value: sarama.StringEncoder(fmt.Sprintf("%04d", i))})
				must(t, err)
			}
		}
		produce(0, n)
		round := func(members, count int) []string {
			c := newCollector(count)
			ctx, stop := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			for range members {
				g, err := sarama.NewConsumerGroup(seeds, "g", config())
				must(t, err)
				wg.Go(func() {
					for range g.Errors() {
						continue // drained until Close; what matters is what was consumed
					}
				})
				wg.Go(func() {
					for ctx.Err() == nil {
						if err := g.Consume(ctx, []string{"t"}, c); err != nil {
							t.Errorf("consume: %v", err)
							break
						}
					}
					if err := g.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				})
			}
			select {
			case <-c.done:
			case <-time.After(patience):
				t.Errorf("%d of %d messages after %v", len(c.got), count, patience)
			}
			stop()
			wg.Wait()
			slices.Sort(c.got)
			return c.got
		}
		first := round(1, n)
		produce(n, 2*n)
		second := round(1, n)
		all := append(first, second...)
		if len(all) != 2*n || all[0] != "0000" || all[2*n-1] != fmt.Sprintf("%04d", 2*n-1) || len(slices.Compact(all)) != 2*n {
			t.Fatalf("two generations read %d messages, want each of %d once", len(all), 2*n)
		}
		produce(2*n, 3*n)
		// Several members at once may see a message twice over a rebalance (at least once), but none is missed.
		third := slices.Compact(round(3, n))
		for i := 2 * n; i < 3*n; i++ {
			if _, ok := slices.BinarySearch(third, fmt.Sprintf("%04d", i)); !ok {
				t.Fatalf("message %d was missed by three members", i)
			}
		}
		must(t, p.Close())
	})
}

func TestSaramaTransactions(t *testing.T) {
	eachWay(t, func(t *testing.T, seeds []string, config func() *sarama.Config) {
		createTopic(t, seeds, config(), "t", 1)
		cfg := config()
		cfg.Producer.Idempotent = true
		cfg.Producer.Transaction.ID = "sarama"
		cfg.Net.MaxOpenRequests = 1
		p, err := sarama.NewSyncProducer(seeds, cfg)
		must(t, err)
		var want []string
		for i := range 20 {
			must(t, p.BeginTxn())
			v := strconv.Itoa(i)
			_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(v)})
			must(t, err)
			if i%3 == 0 {
				must(t, p.AbortTxn())
				continue
			}
			must(t, p.AddMessageToTxn(&sarama.ConsumerMessage{Topic: "t", Partition: 0, Offset: int64(i)}, "g", nil))
			must(t, p.CommitTxn())
			want = append(want, v)
		}
		must(t, p.Close())
		read := config()
		read.Consumer.IsolationLevel = sarama.ReadCommitted
		c, err := sarama.NewConsumer(seeds, read)
		must(t, err)
		pc, err := c.ConsumePartition("t", 0, sarama.OffsetOldest)
		must(t, err)
		for _, w := range want {
			select {
			case m := <-pc.Messages():
				if string(m.Value) != w {
					t.Fatalf("read committed %s, want %s", m.Value, w)
				}
			case err := <-pc.Errors():
				t.Fatal(err)
			case <-time.After(patience):
				t.Fatalf("no message %s", w)
			}
		}
		must(t, pc.Close())
		must(t, c.Close())
		admin, err := sarama.NewClusterAdmin(seeds, config())
		must(t, err)
		offsets, err := admin.ListConsumerGroupOffsets("g", map[string][]int32{"t": {0}})
		must(t, err)
		if got := offsets.GetBlock("t", 0).Offset; got != 20 {
			t.Fatalf("offset committed in the last transaction is %d, want 20", got)
		}
		must(t, admin.Close())
	})
}
