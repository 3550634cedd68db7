package replicas

import (
	"time"

	"github.com/millrace/millrace/core/clock"
)

// reopenPause is how long an offline partition is left alone after a try to open it.
const reopenPause = time.Second

// reopen tries in the background to open a partition that is offline for want of
// room; once at a time, and not more often than every reopenPause.
func (m *Manager) reopen(r *replica) {
	id, index := r.topic, r.index
	if !r.trying.CompareAndSwap(false, true) {
		return
	}
	nowMs := m.o.Clock.Now().UnixMilli()
	if since := nowMs - r.triedMs; since >= 0 && since < reopenPause.Milliseconds() && r.triedMs != 0 {
		r.trying.Store(false)
		return
	}
	r.triedMs = nowMs
	clock.Go(m.o.Clock, "reopen", func() {
		defer r.trying.Store(false)
		m.mu.Lock()
		defer m.mu.Unlock()
		t := m.table.Load().byID[id]
		if m.closed || t == nil || m.image.TopicByID(id) == nil {
			return
		}
		mt := m.image.TopicByID(id)
		was := r.state.Load()
		is := m.open(opening{t, index, mt.Partitions[index].LeaderEpoch, t.config}, m.image)
		r.state.Store(is)
		switch {
		case is.err == nil:
			m.o.Logger.Info("partition is online again", "topic", t.Name, "partition", index)
		case is.err.Error() != was.err.Error():
			m.offline(t, index, is)
		}
	})
}

// offline logs why a partition can not be served.
func (m *Manager) offline(t *Topic, index int32, o *outcome) {
	until := "until the next start"
	if o.passing {
		until = "until there is room; it is opened then when somebody asks for it"
	}
	m.o.Logger.Error("partition is offline "+until, "topic", t.Name, "partition", index, "error", o.err)
}
