package twophase

import (
	"fmt"
	"strconv"
	"strings"
)

// PreparedState names a prepared transaction of the log: the producer id and the epoch
// that its records carry. No two transactions have the same. The zero value names none.
//
// It is written as Kafka's PreparedTxnState is, "4711:12", and "" for none, so that a
// program in Java can finish what one in Go has begun.
type PreparedState struct {
	producerID int64
	epoch      int16
	set        bool
}

// NewPreparedState names the transaction of a producer id and epoch; negative ones name none, as in the protocol.
func NewPreparedState(producerID int64, epoch int16) PreparedState {
	if producerID < 0 || epoch < 0 {
		return PreparedState{}
	}
	return PreparedState{producerID: producerID, epoch: epoch, set: true}
}

// ParsePreparedState reads what String has written.
func ParsePreparedState(s string) (PreparedState, error) {
	if s == "" {
		return PreparedState{}, nil
	}
	id, epoch, ok := strings.Cut(s, ":")
	p, err1 := strconv.ParseInt(id, 10, 64)
	e, err2 := strconv.ParseInt(epoch, 10, 16)
	if !ok || err1 != nil || err2 != nil || p < 0 || e < 0 {
		return PreparedState{}, fmt.Errorf("twophase: %q is no prepared state, which is written as producer id:epoch", s)
	}
	return NewPreparedState(p, int16(e)), nil
}

// Any says that the state names a transaction.
func (s PreparedState) Any() bool { return s.set }

// ProducerID is -1 for none.
func (s PreparedState) ProducerID() int64 {
	if !s.set {
		return -1
	}
	return s.producerID
}

// Epoch is -1 for none.
func (s PreparedState) Epoch() int16 {
	if !s.set {
		return -1
	}
	return s.epoch
}

// String writes the state as Kafka does.
func (s PreparedState) String() string {
	if !s.set {
		return ""
	}
	return strconv.FormatInt(s.producerID, 10) + ":" + strconv.Itoa(int(s.epoch))
}
