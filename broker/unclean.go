package broker

import (
	"fmt"

	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/replicas"
)

// raiseEpochs raises, at a start that follows no clean stop, the leader epoch of each partition that acknowledges what is not synced.
// Such a partition may have lost what clients have read, and goes on at the same offsets with other records; a client that knows the
// old epoch asks where it ended, and learns that its position is beyond (KIP-320). Of a partition that is always synced nothing that
// anybody has seen can be missing, so its epoch stays.
func (b *Broker) raiseEpochs(s *base, store *metadata.Store, m *replicas.Manager) error {
	if s.flusher.Clean() {
		return nil
	}
	raised := 0
	_, err := store.ChangeNow(func(im *metadata.Image) ([]metadata.Change, error) {
		changes := m.Relaxed(im)
		raised = len(changes)
		return changes, nil
	})
	if err != nil {
		return fmt.Errorf("broker: leader epochs after an unclean stop: %w", err)
	}
	if raised > 0 {
		s.logger.Warn("the last stop was not a clean one: partitions of a relaxed durability may have lost their last records",
			"partitions", raised)
	}
	return nil
}
