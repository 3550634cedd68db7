package sim

import (
	"bytes"
	"encoding/binary"

	"github.com/millrace/millrace/core/record"
)

// item is one record that a client wants in a topic, known by its number. Numbers are never used twice.
type item struct {
	id        int
	topic     string
	partition int32
	txn       *txn // nil outside of transactions
	source    *item
	// acked is the offset that the broker has acknowledged, -1 for none; at is where the log has it, -1 for nowhere.
	acked, at int64
	fate      fate // of the record in the log
	// weak says that an acknowledgement is not worth more than the page cache. cuts is how often the power had failed when it came.
	weak bool
	cuts int
	// key is that of a record in a compacted topic, and gone says that it deletes the key.
	key  string
	gone bool
}

// fate is what readers of committed data are told of a record.
type fate int8

const (
	undecided fate = iota
	committed
	aborted
)

func (f fate) String() string { return [...]string{"undecided", "committed", "aborted"}[f] }

// txn is one transaction of a client, as its client sees it.
type txn struct {
	id    string // transactional id
	items []*item
	// asked says that a commit was sent while its producer was the newest of its id. Before that it must never be committed.
	asked bool
	// ended is what the client was told.
	ended fate
	fate  fate // what markers say
	// A copy moves the group's position of a partition of the input from one offset to another.
	part        int32
	from, moves int64
}

// written is the time of all records: so far back that no clock of a node takes it for a time to come.
var written = epoch.AddDate(-1, 0, 0)

// padding is what makes records larger: no zeros, as a disk may put there for what it lost.
var padding = bytes.Repeat([]byte{0xa5}, 700)

// encode is the record. Its number is in the value, or in a header where there is no value.
func (i *item) encode() (key, value []byte, headers []record.Header) {
	number := binary.BigEndian.AppendUint64(nil, uint64(i.id))
	if i.key != "" {
		key = []byte(i.key)
	}
	if i.gone {
		return key, nil, []record.Header{{Key: []byte("number"), Value: number}}
	}
	size := i.id % 40
	if i.id%5 == 0 { // over more than one sector of the disk
		size = 700
	}
	return key, append(number, padding[:size]...), nil
}

// numberOf is the number of the item that a record is, -1 for none.
func numberOf(r *record.Record) int {
	number := r.Value
	if number == nil && len(r.Headers) > 0 {
		number = r.Headers[0].Value
	}
	if len(number) < 8 {
		return -1
	}
	return int(binary.BigEndian.Uint64(number))
}
