package workload

import (
	"context"
	"encoding/binary"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// lateKeys are the requests that may arrive late: those whose sender the protocol can
// tell. A late OffsetCommit is not among them. It takes the group back to where it was,
// on every broker: nothing in it says that a later one has been answered, which is one
// reason to commit offsets in transactions.
var lateKeys = []int16{
	kmsg.Produce.Int16(), kmsg.InitProducerID.Int16(), kmsg.AddPartitionsToTxn.Int16(), kmsg.AddOffsetsToTxn.Int16(),
	kmsg.EndTxn.Int16(), kmsg.TxnOffsetCommit.Int16(),
}

// mayBeLate says whether bytes are one whole request that may arrive late.
func mayBeLate(frame []byte) bool {
	return len(frame) >= 14 && int(binary.BigEndian.Uint32(frame)) == len(frame)-4 &&
		slices.Contains(lateKeys, int16(binary.BigEndian.Uint16(frame[4:])))
}

// late lets a request arrive once more after a while, on a connection of its own, or only
// then: the client's connection is lost, and the client asks again long before.
func (l *line) late(b []byte, after time.Duration) (n int, err error) {
	l.wire.lates.Add(1)
	frame := slices.Clone(b)
	time.AfterFunc(after, func() { l.wire.deliver(l.network, l.addr, frame) })
	if after%2 == 0 {
		return l.Conn.Write(b)
	}
	// The request is on its way, as far as the client can know.
	return len(b), l.Conn.Close()
}

// deliver brings a late request to the broker. Nobody is there to read the answer; it is
// waited for so that the broker does not take the request for given up. A broker that is
// away loses it.
func (w *wire) deliver(network, addr string, frame []byte) {
	if w.healed.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := w.dial(ctx, network, addr)
	if err != nil {
		return
	}
	defer c.Close()
	if c.SetDeadline(time.Now().Add(2*time.Second)) != nil {
		return
	}
	if _, err := c.Write(frame); err != nil {
		return
	}
	_, _ = io.ReadFull(c, make([]byte, 4)) // the beginning of an answer, or none
}
