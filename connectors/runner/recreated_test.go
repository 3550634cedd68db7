package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
)

// meddler does something before the first commit, which stores where reading
// begins: the topic has been checked by then, and nothing was read yet.
type meddler struct {
	connectors.TxSink
	once sync.Once
	do   func()
}

func (m *meddler) Commit(ctx context.Context, b *connectors.Batch) error {
	m.once.Do(m.do)
	return m.TxSink.Commit(ctx, b)
}

// A topic that is made anew between the check of the position and the first read
// is noticed before anything of the new one is stored.
func TestRecreatedAfterTheCheck(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	createTopic(t, b, "orders", 1)
	produce(t, b, "orders", "", 0, 5, true)
	path := filepath.Join(t.TempDir(), "out.db")
	s, err := runner.NewSink(runner.SinkOptions{
		Cluster: b, Topics: []string{"orders"}, Value: connectors.JSON, Linger: 3 * time.Millisecond,
		New: func(int) (connectors.TxSink, error) {
			sink, err := sqlite.New(sqliteConfig(path))
			return &meddler{TxSink: sink, do: func() {
				cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
				if err == nil {
					defer cl.Close()
					_, err = kadm.NewClient(cl).DeleteTopic(t.Context(), "orders")
				}
				if err != nil {
					t.Error(err)
				}
				createTopic(t, b, "orders", 1)
				produce(t, b, "orders", "", 100, 5, true)
			}}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Run(ctx); !errors.Is(err, connectors.ErrTopicRecreated) {
		t.Errorf("got error %v, want one that matches ErrTopicRecreated", err)
	}
	exactly(t, path, 0)
}
