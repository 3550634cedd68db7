package broker

import (
	"errors"
	"fmt"
	"uuid"

	"github.com/millrace/millrace/broker/internal/api"
	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/replicas"
)

// startCoordinators starts the group and the transaction coordinator on their
// internal topics. They load in the background and refuse with a retriable code
// until they have.
func (b *Broker) startCoordinators(s *base, server *api.Server) error {
	var err error
	if server.Groups, err = b.newGroups(s, server); err != nil {
		return fmt.Errorf("broker: group coordinator: %w", err)
	}
	if server.Txns, err = b.newTransactions(s, server); err != nil {
		return fmt.Errorf("broker: transaction coordinator: %w", err)
	}
	server.Replicas.OnDelete(func(name string, id metadata.ID) { dropOffsets(server.Groups, name, id) })
	server.Groups.Start()
	b.stack.push("group coordinator", func() error { server.Groups.Close(); return nil })
	server.Txns.Start()
	b.stack.push("transaction coordinator", func() error { server.Txns.Close(); return nil })
	return nil
}

func (b *Broker) newGroups(s *base, server *api.Server) (*coord.Runtime[*group.Machine], error) {
	im, m := server.Meta.Image(), server.Replicas
	options := group.Options{
		MinSessionTimeout:      b.config.GroupMinSessionTimeout,
		MaxSessionTimeout:      b.config.GroupMaxSessionTimeout,
		InitialRebalanceDelay:  b.config.GroupInitialRebalanceDelay,
		Retention:              b.config.OffsetsRetention,
		RetentionCheckInterval: b.config.OffsetsRetentionCheckInterval,
		// Of a topic that was deleted right before a crash only the metadata knows.
		Gone: func(id group.ID) bool { return server.Meta.Image().TopicByID(id) == nil },
	}
	if err := options.Validate(); err != nil {
		return nil, err
	}
	return coord.NewRuntime(coord.Options[*group.Machine]{
		Topic:      metadata.OffsetsTopic,
		Partitions: int32(len(im.Topic(metadata.OffsetsTopic).Partitions)),
		Open:       func(i int32) (coord.Log, error) { return m.Get(metadata.OffsetsTopic, i) },
		New: func(int32) *group.Machine {
			return group.New(options, func() string { return uuid.UUID(metadata.NewIDFrom(s.random)).String() })
		},
		Clock:  s.clock,
		Logger: s.logger,
	})
}

func (b *Broker) newTransactions(s *base, server *api.Server) (*coord.Transactions, error) {
	m := server.Replicas
	return coord.NewTransactions(coord.TransactionsOptions{
		Partitions: int32(len(server.Meta.Image().Topic(metadata.TransactionsTopic).Partitions)),
		Open:       func(i int32) (coord.Log, error) { return m.Get(metadata.TransactionsTopic, i) },
		Data: func(topic string, i int32) (coord.MarkerLog, error) {
			p, err := m.Get(topic, i)
			if errors.Is(err, replicas.ErrUnknownTopic) || errors.Is(err, replicas.ErrUnknownPartition) {
				return nil, fmt.Errorf("%w: %w", coord.ErrNoPartition, err)
			}
			return p, err
		},
		Groups:      server.Groups,
		ProducerIDs: server.Meta.NextProducerID,
		MaxTimeout:  b.config.TransactionMaxTimeout,
		Expiration:  b.config.TransactionalIDExpiration, SweepInterval: b.config.TransactionalIDSweepInterval,
		TwoPhase: b.config.TransactionTwoPhaseCommit, NoticeAfter: b.config.TransactionNoticeAfter,
		Clock:  s.clock,
		Logger: s.logger,
	})
}

// dropOffsets removes what groups have committed for a deleted topic. Nothing
// waits for it: offsets of a topic id that is gone are never shown.
func dropOffsets(groups *coord.Runtime[*group.Machine], topic string, id metadata.ID) {
	for i := int32(0); ; i++ {
		shard := groups.Shard(i)
		if shard == nil {
			return
		}
		shard.Do(func(any) {}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
			return m.DeleteTopic(nowMs, to, topic, id)
		})
	}
}
