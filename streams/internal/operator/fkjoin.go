package operator

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/internal/task"
)

// KeyFunc takes the foreign key out of a row; null says that it has none.
type KeyFunc[K, V, KO any] func(ctx context.Context, r *Record[K, V]) (key KO, null bool, err error)

// ForeignJoin joins each row of a left table with the row of a right table that
// its foreign key names. The two sides run in different tasks and talk through
// two topics. A left row subscribes with its foreign key, in the task that owns
// that key; the right side answers each subscription, and each change of its row
// to all that subscribe to it; the left side joins answers with its row.
//
// Answers may be overtaken: a row may have changed, or be gone, when the answer
// for its former foreign key comes. So each subscription has a number that the
// answers repeat, and the left side takes only those with the number of its
// latest. Unlike a hash of the row that never makes two rows the same, and it does
// not demand that a value encodes to the same bytes each time.
//
// What goes out is what Kafka sends: an answer that is caused by the left row has
// the larger of both times, one caused by the right row has the right row's; a left
// row that is deleted or loses its foreign key gives a deletion though no result
// was ever sent; and so does each deletion of a right row. An unchanged foreign key
// without a right row gives none, unless a result is out.
type ForeignJoin[K, VL, KR, VR, V any] struct {
	Node      string
	Handler   task.Handler
	LeftAlone bool
	Left      View[VL]
	Right     View[VR]
	LeftKey   *Codec[K]
	RightKey  *Codec[KR]
	RightVal  *Codec[VR]
	Key       func() KeyFunc[K, VL, KR]
	New       func() JoinFunc[K, VL, VR, V]
	Out       *Outlet[K, V]

	// Stores and topics.
	Subscribed, Subscriptions   string
	SubscribeTopic, AnswerTopic string
	// Result is the store of the results, "" if nobody looks them up.
	Result string
	Value  *Codec[V]
	Demand *Demand
}

// What a message asks for or answers.
const (
	fkUnsubscribe byte = iota
	fkSubscribe
	fkSubscribeLoud // the foreign key has changed: a result may be out
	fkNone          // no right row, of which the left side knows what it means
	fkNoneLoud      // no right row, and a deletion is due
	fkRow           // a right row
)

var errForeign = errors.New("bytes are no message of a foreign-key join")

// appendSubscription: what, the left task's partition, the number, the left key.
func appendSubscription(dst []byte, what byte, partition int32, seq int64, left []byte) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, what), uint32(partition))
	return append(binary.BigEndian.AppendUint64(dst, uint64(seq)), left...)
}

// subscription is a message or, without what, a row of the right side's store.
type subscription struct {
	what      byte
	partition int32
	seq       int64
	left      []byte
}

func splitSubscription(b []byte) (s subscription, err error) {
	if len(b) < 13 || b[0] > fkSubscribeLoud {
		return s, fmt.Errorf("%w: %d bytes of a subscription", errForeign, len(b))
	}
	return subscription{b[0], int32(binary.BigEndian.Uint32(b[1:])), int64(binary.BigEndian.Uint64(b[5:])), b[13:]}, nil
}

// appendAnswer: what, the number, the right row's value.
func appendAnswer(dst []byte, what byte, seq int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, what), uint64(seq))
}

func splitAnswer(b []byte) (what byte, seq int64, value []byte, err error) {
	if len(b) < 9 || b[0] < fkNone || b[0] > fkRow {
		return 0, 0, nil, fmt.Errorf("%w: %d bytes of an answer", errForeign, len(b))
	}
	return b[0], int64(binary.BigEndian.Uint64(b[1:])), b[9:], nil
}
