package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/txn/session"
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

// readPosition returns the last committed position of a part; nil when there is
// none. It must be called after the producer of that part was initialised.
//
// The end is asked for as high watermark, not as last stable offset: a marker of
// the predecessor's transaction may still be on its way, and the last stable
// offset would stop before the position that it commits.
func readPosition(ctx context.Context, c *session.Cluster, topic string, k sourceKey) (*connectors.SourcePos, error) {
	key, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("position: %w", err)
	}
	part := session.TopicPartition{Topic: topic}
	parts := []session.TopicPartition{part}
	starts, err := c.List(ctx, session.Start, parts)
	if err != nil {
		return nil, fmt.Errorf("start of topic %s: %w", topic, err)
	}
	ends, err := c.List(ctx, session.End, parts)
	if err != nil {
		return nil, fmt.Errorf("end of topic %s: %w", topic, err)
	}
	r := c.NewReader(session.ReaderOptions{})
	defer r.Close()
	feed := r.Add(part, starts[part])
	var last []byte
	for {
		for rec, ok := feed.Head(); ok; rec, ok = feed.Head() {
			if bytes.Equal(rec.Key, key) {
				last = bytes.Clone(rec.Value) // null = forgotten
			}
			feed.Pop()
		}
		if feed.Position() >= ends[part] {
			break
		}
		if err := feed.Err(); err != nil {
			return nil, fmt.Errorf("read topic %s: %w", topic, err)
		}
		select {
		case <-r.Arrived():
		case <-ctx.Done():
			return nil, fmt.Errorf("read topic %s at offset %d of %d: %w", topic, feed.Position(), ends[part], ctx.Err())
		}
	}
	if last == nil {
		return nil, nil
	}
	return decodePosition(last)
}
