package workload_test

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/txn/history"
	"github.com/millrace/millrace/txn/history/workload"
)

// liar makes a correct broker a wrong one: it changes requests on their way.
type liar struct {
	b     *broker.Broker
	lie   func(kmsg.Request) bool // whether it changed the request
	lies  atomic.Int64
	whole atomic.Int64 // frames that were looked at
}

func (l *liar) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.b.Dial(ctx, network, addr)
	return &lyingConn{c, l}, err
}

type lyingConn struct {
	net.Conn
	l *liar
}

// Write gets whole requests, as franz-go writes them.
func (c *lyingConn) Write(frame []byte) (int, error) {
	if out := c.l.rewrite(frame); out != nil {
		if _, err := c.Conn.Write(out); err != nil {
			return 0, err
		}
		return len(frame), nil
	}
	return c.Conn.Write(frame)
}

// rewrite returns the changed frame, nil if it stays as it is.
func (l *liar) rewrite(frame []byte) []byte {
	if len(frame) < 14 || int(binary.BigEndian.Uint32(frame)) != len(frame)-4 {
		return nil
	}
	l.whole.Add(1)
	req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(frame[4:])))
	req.SetVersion(int16(binary.BigEndian.Uint16(frame[6:])))
	head := 14
	if n := int16(binary.BigEndian.Uint16(frame[12:])); n > 0 {
		head += int(n)
	}
	if req.IsFlexible() {
		head++ // no tags
	}
	if err := req.ReadFrom(frame[head:]); err != nil || !l.lie(req) {
		return nil
	}
	l.lies.Add(1)
	out := req.AppendTo(slices.Clone(frame[:head]))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

// TestLies: a broker that does what it should not is found out.
func TestLies(t *testing.T) {
	t.Parallel()
	every := func(n int64) func() bool {
		var count atomic.Int64
		return func() bool { return count.Add(1)%n == 0 }
	}
	sometimes := every(10)
	for _, c := range []struct {
		name  string
		shows []history.Class
		lie   func(kmsg.Request) bool
	}{
		{"readers are shown everything", []history.Class{history.AbortedRead}, func(r kmsg.Request) bool {
			f, ok := r.(*kmsg.FetchRequest)
			if ok {
				f.IsolationLevel = 0
			}
			return ok
		}},
		{"aborts commit", []history.Class{history.AbortedRead}, func(r kmsg.Request) bool {
			e, ok := r.(*kmsg.EndTxnRequest)
			if ok = ok && !e.Commit; ok {
				e.Commit = true
			}
			return ok
		}},
		{"some commits abort", []history.Class{history.Unseen, history.LostWrite}, func(r kmsg.Request) bool {
			e, ok := r.(*kmsg.EndTxnRequest)
			if ok = ok && e.Commit && sometimes(); ok {
				e.Commit = false
			}
			return ok
		}},
		{"groups forget what they consumed", []history.Class{history.ConsumedTwice, history.NotConsumed, history.OffsetBack}, func(r kmsg.Request) bool {
			o, ok := r.(*kmsg.TxnOffsetCommitRequest)
			for i := 0; ok && i < len(o.Topics); i++ {
				for p := range o.Topics[i].Partitions {
					o.Topics[i].Partitions[p].Offset = 0
				}
			}
			return ok
		}},
		{"groups pass records over", []history.Class{history.NotConsumed, history.OffsetUncommitted}, func(r kmsg.Request) bool {
			o, ok := r.(*kmsg.TxnOffsetCommitRequest)
			for i := 0; ok && i < len(o.Topics); i++ {
				for p := range o.Topics[i].Partitions {
					o.Topics[i].Partitions[p].Offset += 20
				}
			}
			return ok
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &liar{b: brokertest.Start(t), lie: c.lie}
			events := start(t, workload.Options{Seeds: l.b.Seeds(), Dial: l.Dial, Seed: seedtest.New(t), Patience: 20 * time.Second}, func(p workload.Progress) bool {
				return l.lies.Load() >= 60 && p.Done >= 800 && p.Consumed >= 40
			}).wait(t)
			r, err := history.Check(events)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d of %d requests changed: %v", l.lies.Load(), l.whole.Load(), r.Counts)
			if l.lies.Load() == 0 {
				t.Error("nothing was changed")
			}
			if !slices.ContainsFunc(c.shows, func(c history.Class) bool { return r.Counts[c] > 0 }) {
				t.Errorf("none of %v is found, but %v", c.shows, r.Errors())
			}
		})
	}
}
