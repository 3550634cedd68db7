package brokertest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/seam"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

// Option changes how a broker is started.
type Option func(*settings)

type settings struct {
	config broker.Config
	seam   seam.Options
	level  slog.Level
}

// Configure changes the broker's configuration.
func Configure(change func(*broker.Config)) Option {
	return func(s *settings) { change(&s.config) }
}

// OnTCP opens a free port on the loopback interface, see broker.Broker.Addr.
func OnTCP() Option {
	return Configure(func(c *broker.Config) { c.Listen = "127.0.0.1:0" })
}

// InFolder keeps the data in a folder of the real file system.
func InFolder(dir string) Option {
	return Configure(func(c *broker.Config) { c.Dir = dir })
}

// OnFS keeps the data on the given file system, durably as far as that one is.
func OnFS(fs vfs.FS) Option { return func(s *settings) { s.seam.FS = fs } }

// WithClock gives the broker another clock.
func WithClock(c clock.Clock) Option { return func(s *settings) { s.seam.Clock = c } }

// CleanEvery makes the broker look so often for records that retention or
// compaction removes.
func CleanEvery(d time.Duration) Option {
	return Configure(func(c *broker.Config) { c.RetentionCheckInterval, c.CompactionInterval = d, d })
}

// InternalTopics gives the offsets and the transactions topic of a new disk settings
// on top of their own.
func InternalTopics(config map[string]string) Option {
	return func(s *settings) { s.seam.InternalTopics = config }
}

// MaxFrame bounds the size of a request in bytes.
func MaxFrame(n int) Option {
	return func(s *settings) { s.seam.Limits.MaxFrame, s.seam.Limits.MaxControlFrame = n, n }
}

// MaxIdle closes connections that are idle for so long.
func MaxIdle(d time.Duration) Option { return func(s *settings) { s.seam.Limits.Idle = d } }

// Verbose shows all that the broker logs, not only warnings and errors.
func Verbose() Option { return func(s *settings) { s.level = slog.LevelDebug } }

// Start starts a broker that is closed when the test ends. Groups form without
// the usual wait for more members. Warnings and errors go to the test's log.
func Start(t testing.TB, options ...Option) *broker.Broker {
	t.Helper()
	b, err := TryStart(t, options...)
	if err != nil {
		t.Fatalf("start broker: %v", err)
	}
	return b
}

// TryStart is Start for tests of starts that may fail.
func TryStart(t testing.TB, options ...Option) (*broker.Broker, error) {
	t.Helper()
	b, err := start(t, options)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close broker: %v", err)
		}
	})
	return b, nil
}

func start(t testing.TB, options []Option) (*broker.Broker, error) {
	s := settings{
		config: broker.Config{GroupInitialRebalanceDelay: time.Millisecond, GroupMinSessionTimeout: 10 * time.Millisecond},
		seam: seam.Options{Limits: listener.Limits{}, CarryBytes: 64 << 10, // so small that they are begun anew now and then
			OpenFiles: 8, RestEvery: 50 * time.Millisecond}, // files come and go
		level: slog.LevelWarn,
	}
	for _, o := range options {
		o(&s)
	}
	if s.config.Logger == nil {
		s.config.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: s.level}))
	}
	return broker.Start(seam.With(context.Background(), s.seam), s.config)
}

// StartLoose is TryStart for brokers on disks that fail: the test may close them
// itself, and what closing says is not the test's.
func StartLoose(t testing.TB, options ...Option) (*broker.Broker, error) {
	t.Helper()
	b, err := start(t, options)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Logf("close broker: %v", err)
		}
	})
	return b, nil
}
