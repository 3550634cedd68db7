package runner

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
)

// sourceKey is the key of a stored source position.
type sourceKey struct {
	Source string `json:"source"`
	Part   string `json:"part"`
}

// sourceValue is the value of a stored source position.
type sourceValue struct {
	State json.RawMessage `json:"state,omitempty"` // the source's own, if it is JSON
	Bytes []byte          `json:"bytes,omitempty"` // the source's own, if it is not
	Done  bool            `json:"done"`
}

// encodePosition makes the record of a position, readable where the source's
// own encoding is.
func encodePosition(k sourceKey, p connectors.SourcePos) (key, value []byte, err error) {
	v := sourceValue{Done: p.Done}
	if json.Valid(p.State) {
		v.State = p.State
	} else {
		v.Bytes = p.State
	}
	if key, err = json.Marshal(k); err != nil {
		return nil, nil, fmt.Errorf("position: %w", err)
	}
	if value, err = json.Marshal(v); err != nil {
		return nil, nil, fmt.Errorf("position: %w", err)
	}
	return key, value, nil
}

func decodePosition(value []byte) (*connectors.SourcePos, error) {
	var v sourceValue
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("%w: stored position: %w", connectors.ErrConfig, err)
	}
	p := &connectors.SourcePos{State: v.State, Done: v.Done}
	if v.State == nil {
		p.State = v.Bytes
	}
	return p, nil
}

// startKey is the key of the record that a part writes before it reads its position.
type startKey struct {
	sourceKey
	Start bool `json:"start"`
}

// startRecord is that record: an id of its own makes it recognisable.
func startRecord(k sourceKey) (key []byte, id string, err error) {
	if key, err = json.Marshal(startKey{sourceKey: k, Start: true}); err != nil {
		return nil, "", fmt.Errorf("position: %w", err)
	}
	return key, rand.Text(), nil
}

// readPosition returns the last committed position of a part; nil when there is
// none. It reads up to the start record with the given id, which the part's
// producer has written after it was initialised: every earlier transaction of
// the part is decided by then, and its marker lies before that record.
//
// The topic is shared, and transactions of other parts may be open in it. A
// committed reader would wait before the first of them, which may be a dead
// process's, until it times out; and it could not stop there either, as a
// position of ours may lie behind. So the log is read uncommitted, and the
// markers in it decide about the records of this part alone.
func readPosition(ctx context.Context, c connectors.Cluster, topic string, k sourceKey, id string) (*connectors.SourcePos, error) {
	key, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("position: %w", err)
	}
	client, err := kgo.NewClient(append(dial(c, "millrace-connector-"+k.Source), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))...)
	if err != nil {
		return nil, fmt.Errorf("read topic %s: %w", topic, err)
	}
	defer client.Close()
	d := decided{key: key, open: map[int64][]byte{}}
	for found := false; !found; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read topic %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			found = found || string(r.Value) == id
			d.take(r)
		})
	}
	if d.last == nil {
		return nil, nil
	}
	return decodePosition(d.last)
}

// decided follows the records of one key through the transactions they are in.
type decided struct {
	key  []byte
	last []byte           // committed; nil = none, or forgotten by a null value
	open map[int64][]byte // by producer id: the last record of the key in its open transaction
}

func (d *decided) take(r *kgo.Record) {
	switch {
	case r.Attrs.IsControl():
		value, ours := d.open[r.ProducerID]
		// A marker's key is a version and a type, int16 each; type 1 commits.
		if ours && len(r.Key) >= 4 && binary.BigEndian.Uint16(r.Key[2:]) == 1 {
			d.last = value
		}
		delete(d.open, r.ProducerID)
	case !bytes.Equal(r.Key, d.key):
	case r.Attrs.IsTransactional():
		d.open[r.ProducerID] = r.Value
	default:
		d.last = r.Value
	}
}
