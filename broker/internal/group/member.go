package group

import (
	"bytes"

	"github.com/millrace/millrace/broker/internal/coord"
)

// protocol is one assignment protocol that a member supports, with the
// subscription it sends to the leader under that protocol.
type protocol struct {
	name     string
	metadata []byte
}

// member is one member of a running group (soft state). The group that holds it
// owns it. Byte slices are never changed, so that records and responses may
// share them.
type member struct {
	id string
	// instance is nil for a dynamic member (KIP-345).
	instance       *string
	clientID, host string
	sessionMs      int64
	rebalanceMs    int64
	protocols      []protocol // by preference
	assignment     []byte
	joining        coord.Token // the JoinGroup that waits, 0 for none
	syncing        coord.Token // the SyncGroup that waits, 0 for none
	isNew          bool        // was in no generation yet
	synced         bool        // has asked for its assignment of this generation
	deadlineMs     int64       // end of the session; of the wait while isNew
}

// expires says whether the member's deadline counts.
func (m *member) expires() bool {
	return m.isNew || m.joining == 0 && m.syncing == 0
}

func (m *member) renew(nowMs int64) { m.deadlineMs = nowMs + m.sessionMs }

// metadata returns what the member sent for a protocol.
func (m *member) metadata(name string) []byte {
	for i := range m.protocols {
		if m.protocols[i].name == name {
			return m.protocols[i].metadata
		}
	}
	return nil
}

func (m *member) supports(name string) bool {
	for i := range m.protocols {
		if m.protocols[i].name == name {
			return true
		}
	}
	return false
}

// matches says whether the member's protocols are the very same, order included.
func (m *member) matches(protocols []protocol) bool {
	if len(m.protocols) != len(protocols) {
		return false
	}
	for i, p := range protocols {
		if m.protocols[i].name != p.name || !bytes.Equal(m.protocols[i].metadata, p.metadata) {
			return false
		}
	}
	return true
}
