package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/api"
	"github.com/millrace/millrace/broker/internal/cleaner"
	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/broker/internal/replicas"
	"github.com/millrace/millrace/broker/internal/scrub"
	"github.com/millrace/millrace/broker/internal/seam"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/memnet"
	"github.com/millrace/millrace/core/vfs"
)

// Broker is a running broker. All methods are safe for concurrent use.
type Broker struct {
	config     Config
	memoryHost string
	memory     *memnet.Network
	socket     *listener.Listener // nil without one
	stack      stack
	end        sync.Once
	endErr     error
	detach     func() bool // stops watching the context of Start
	cleaner    *cleaner.Cleaner
	scrubber   *scrub.Scrubber // nil when it is off
	replicas   *replicas.Manager
	server     *api.Server
	listeners  []*listener.Listener
}

// stack is the parts of a broker in the order in which they were started. Close
// takes them down from the top.
type stack []part

type part struct {
	what string
	stop func() error
}

func (s *stack) push(what string, stop func() error) { *s = append(*s, part{what, stop}) }

// unwind stops everything, newest first, and goes on past failures.
func (s *stack) unwind() error {
	var errs []error
	for i := len(*s) - 1; i >= 0; i-- {
		if err := (*s)[i].stop(); err != nil {
			errs = append(errs, fmt.Errorf("broker: stopping %s: %w", (*s)[i].what, err))
		}
	}
	*s = nil
	return errors.Join(errs...)
}

// Start starts a broker. It is ready for clients when Start returns. Cancelling
// ctx closes it.
//
// Errors name what is wrong with which folder or address; errors.Is knows
// ErrLocked, ErrNewerFormat, and the operating system's reasons.
func Start(ctx context.Context, c Config) (*Broker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := &Broker{config: c.withDefaults()}
	if err := b.start(seam.From(ctx)); err != nil {
		return nil, errors.Join(err, b.stack.unwind())
	}
	b.detach = context.AfterFunc(ctx, func() {
		if err := b.Close(); err != nil {
			b.config.Logger.Error("broker did not close cleanly", "error", err)
		}
	})
	return b, nil
}

// Close stops the broker: no more connections, requests under way are answered,
// files are synced and closed. It may be called more than once and by several
// goroutines; all get the first call's result.
func (b *Broker) Close() error {
	b.end.Do(func() {
		if b.detach != nil {
			b.detach()
		}
		b.endErr = b.stack.unwind()
		b.config.Logger.Info("broker closed")
	})
	return b.endErr
}

// base is what every part stands on.
type base struct {
	fs      vfs.FS
	dir     string
	durable bool
	clock   clock.Clock
	logger  *slog.Logger
	random  io.Reader
	folder  *folder
	flusher *flush.Flusher
	// internal are settings for the internal topics of a new cluster, on top of their own; tests have some.
	internal map[string]string
}

func (b *Broker) start(o seam.Options) error {
	base, err := b.openBase(o)
	if err != nil {
		return err
	}
	manager := replicas.New(replicas.Options{
		FS: base.fs, Dir: base.dir, Flusher: base.flusher, Clock: base.clock, Logger: base.logger, Durable: base.durable,
		Static: b.config.static(), Files: commitlog.NewFiles(o.OpenFiles),
	})
	b.replicas = manager
	server := &api.Server{
		Config: b.apiConfig(base.folder.nodeID), Clock: base.clock, Logger: base.logger, Random: base.random,
		Replicas: manager, Authorize: b.authorize, Advertised: b.advertised,
	}
	// From here on the order of stopping matters: the acceptors stop first, then
	// the coordinators and the partitions answer whoever waits for them, and the
	// connections end when those answers are on their way.
	b.stack.push("connections", func() error {
		var errs []error
		for _, l := range b.listeners {
			errs = append(errs, l.Close())
		}
		return errors.Join(errs...)
	})
	b.server = server
	server.Start()
	b.stack.push("parked fetches", func() error { server.Stop(); return nil })

	if server.Meta, err = b.openMetadata(base, manager); err != nil {
		return err
	}
	if err := b.bootstrap(base, server.Meta); err != nil {
		return err
	}
	if err := manager.Sweep(server.Meta.Image()); err != nil {
		return err
	}
	if err := b.raiseEpochs(base, server.Meta, manager); err != nil {
		return err
	}
	if err := b.startCoordinators(base, server); err != nil {
		return err
	}
	if err := b.startCleaner(base, manager); err != nil {
		return err
	}
	b.stack.push("closing of idle files", manager.StartResting(o.RestEvery).Close)
	if err := b.startScrubber(base, manager); err != nil {
		return err
	}
	if o.Serve != nil {
		o.Serve(server)
		return nil
	}
	b.listeners, err = b.listen(base, server, o.Limits)
	b.stack.push("acceptors", func() error {
		var errs []error
		for _, l := range b.listeners {
			errs = append(errs, l.StopAccepting())
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	b.announce(base)
	return nil
}

// openBase opens the data folder and the flusher.
func (b *Broker) openBase(o seam.Options) (*base, error) {
	s := &base{
		fs: o.FS, dir: b.config.Dir, durable: b.config.Dir != "" || o.FS != nil,
		clock: o.Clock, logger: b.config.Logger, random: o.Random, internal: o.InternalTopics,
	}
	if s.random == nil {
		s.random = rand.Reader
	}
	if s.clock == nil {
		s.clock = clock.System()
	}
	if s.dir == "" {
		s.dir = "data"
		if s.fs == nil {
			s.fs = vfs.NewMem()
		}
	} else if s.fs == nil {
		s.fs = vfs.OS()
	}
	var err error
	if s.folder, err = openFolder(s.fs, s.dir, b.config.NodeID, s.random); err != nil {
		return nil, err
	}
	b.stack.push("lock of the data folder", s.folder.lock.Close)
	b.memoryHost = memoryHost(s.folder.clusterID, s.folder.nodeID)
	carry := o.CarryBytes
	if !s.durable { // what ends with the process needs no second copy
		carry = -1
	}
	s.flusher, err = flush.New(flush.Options{FS: s.fs, Dir: s.dir, Clock: s.clock, Logger: s.logger, CarryBytes: carry, Random: s.random})
	if err != nil {
		return nil, fmt.Errorf("broker: data folder %s: %w", s.dir, err)
	}
	b.stack.push("flusher", func() error { return s.flusher.Close() })
	return s, nil
}

// metadataBatchMax bounds one change of the metadata: a topic with as many
// partitions as one request may ask for fits many times.
const metadataBatchMax = 64 << 20

// openMetadata opens the metadata log, and through it all partitions.
func (b *Broker) openMetadata(s *base, m *replicas.Manager) (*metadata.Store, error) {
	dir := filepath.Join(s.dir, replicas.Folder(metadata.LogTopic, 0))
	p, err := partition.Open(partition.Options{
		FS: s.fs, Dir: dir, Topic: metadata.LogTopic, TopicID: metadata.ID{15: 1},
		Log:     commitlog.Config{MaxMessageBytes: metadataBatchMax},
		Flusher: s.flusher, Clock: s.clock, Logger: s.logger, Durable: s.durable,
	})
	if err != nil {
		return nil, fmt.Errorf("broker: metadata log in %s: %w", dir, err)
	}
	b.stack.push("partitions", m.Close)
	store, err := metadata.Open(&metadataLog{p: p, clock: s.clock}, s.folder.clusterID, s.folder.nodeID, m, s.clock, s.logger)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("broker: metadata log in %s: %w", dir, err), p.Close())
	}
	// Stopped before the partitions: afterwards nobody opens or deletes any.
	b.stack.push("metadata", store.Close)
	return store, nil
}

// transactionVersion is finalized in a new cluster: KIP-890 for all who know it.
const transactionVersion = 2

// bootstrap makes what a new cluster has, in one record batch, and takes a block
// of producer ids.
func (b *Broker) bootstrap(s *base, store *metadata.Store) error {
	_, err := store.ChangeNow(func(im *metadata.Image) ([]metadata.Change, error) {
		if len(im.Features) > 0 {
			return nil, nil
		}
		changes := []metadata.Change{metadata.FeatureChange{Name: metadata.TransactionVersion, Level: transactionVersion}}
		for _, name := range []string{metadata.OffsetsTopic, metadata.TransactionsTopic} {
			config := map[string]string{"cleanup.policy": "compact", "segment.bytes": "104857600"}
			maps.Copy(config, s.internal)
			changes = append(changes, metadata.NewTopic(im.NodeID, name, metadata.NewIDFrom(s.random), b.config.InternalPartitions, config)...)
		}
		return changes, nil
	})
	if err != nil {
		return fmt.Errorf("broker: first metadata records: %w", err)
	}
	done := make(chan error, 1)
	store.ReserveProducerIDs(func(err error) { done <- err })
	if reserved, err := clock.Receive(s.clock, done); reserved != nil || err != nil {
		return fmt.Errorf("broker: producer ids: %w", errors.Join(reserved, err))
	}
	return nil
}

// listen opens the listener in memory and, if configured, the socket.
func (b *Broker) listen(s *base, server *api.Server, limits listener.Limits) ([]*listener.Listener, error) {
	b.memory = memnet.New()
	ln, err := b.memory.Listen(b.Seeds()[0])
	if err != nil {
		return nil, fmt.Errorf("broker: listen in memory: %w", err)
	}
	out := []*listener.Listener{listener.Serve(ln, memoryListener, server, limits, s.logger)}
	if b.config.Listen == "" {
		return out, nil
	}
	ln, err = net.Listen("tcp", b.config.Listen)
	if err != nil {
		return out, fmt.Errorf("broker: listen on %s: %w", b.config.Listen, err)
	}
	b.socket = listener.Serve(ln, socketListener, server, limits, s.logger)
	return append(out, b.socket), nil
}

// announce logs what was started, and what it does not do.
func (b *Broker) announce(s *base) {
	args := []any{"cluster", s.folder.clusterID, "node", s.folder.nodeID}
	if b.config.Dir == "" && !s.durable {
		args = append(args, "storage", "memory, lost on close: set Dir to keep it")
	} else {
		args = append(args, "storage", s.dir)
	}
	if addr := b.Addr(); addr != nil {
		args = append(args, "listening", addr.String())
	} else {
		args = append(args, "listening", "in this process only: set Listen to open a port")
	}
	s.logger.Info("broker started", args...)
}

// authorize is the one hook that every handler asks.
func (b *Broker) authorize(principal string, op kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool {
	if b.config.Authorize == nil {
		return true
	}
	return b.config.Authorize(Access{Principal: principal, Operation: api.OperationName(op), Resource: kind.String(), Name: name})
}

var _ io.Closer = (*Broker)(nil)
