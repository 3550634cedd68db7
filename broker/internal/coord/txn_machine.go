package coord

import (
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/coordinator"
)

// txnMachine makes the transaction coordinator, which knows nothing of the broker, a
// [Machine].
type txnMachine struct {
	*coordinator.Machine
}

func (m *txnMachine) Replay(r Replayed) error { return m.Machine.Replay(r.Key, r.Value) }

// ReplayMarker has nothing to do: the coordinator's own log has no transactions.
func (m *txnMachine) ReplayMarker(record.Marker, int64) error { return nil }

func (m *txnMachine) Tick(nowMs int64) Output { return txnOutput(m.Machine.Tick(nowMs)) }

func (m *txnMachine) Loaded(int64) Output { return txnOutput(m.Machine.Loaded()) }

func (m *txnMachine) Resume(nowMs int64) (Output, bool) {
	out, ok := m.Machine.Resume(nowMs)
	return txnOutput(out), ok
}

func (m *txnMachine) Forget(to Token) { m.Machine.Forget(coordinator.Token(to)) }

func txnOutput(from coordinator.Output) Output {
	var out Output
	for _, r := range from.Records {
		out.Records = append(out.Records, Record(r))
	}
	for _, r := range from.Replies {
		out.Replies = append(out.Replies, Reply{To: Token(r.To), Response: r.Response})
	}
	for _, n := range from.Notices {
		out.Effects = append(out.Effects, n)
	}
	for _, d := range from.Decisions {
		out.Effects = append(out.Effects, d)
		if d.Reply.To != 0 {
			out.Pending = append(out.Pending, Token(d.Reply.To))
		}
	}
	return out
}
