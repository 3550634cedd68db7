package sqlite

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors"
)

// Commit stores a batch in one transaction: rows, rejects, then the positions,
// which is where the fence is checked.
func (s *Sink) Commit(ctx context.Context, b *connectors.Batch) error {
	if s.stmt == nil {
		if err := s.plan(ctx); err != nil {
			return err
		}
	}
	err := s.inTx(ctx, "commit", func(tx *sql.Tx) error {
		if err := s.writeRecords(ctx, tx, b); err != nil {
			return err
		}
		if err := s.writeRejects(ctx, tx, b); err != nil {
			return err
		}
		if err := connectors.Reach(ctx, connectors.PointData); err != nil {
			return err
		}
		if err := s.advance(ctx, tx, b.Ranges); err != nil {
			return err
		}
		return connectors.Reach(ctx, connectors.PointPosition)
	})
	if err != nil {
		if errors.Is(err, connectors.ErrConfig) {
			s.stmt = nil // the table may have changed: look again next time
		}
		return err
	}
	return connectors.Reach(ctx, connectors.PointCommitted)
}

// writeRecords stores the records. A record that does not fit is collected, and
// the rest is tried, so that one answer names all rejects.
func (s *Sink) writeRecords(ctx context.Context, tx *sql.Tx, b *connectors.Batch) error {
	if len(b.Records) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, s.stmt.insert)
	if err != nil {
		return err
	}
	defer func() { _ = insert.Close() }() // ends with the transaction in any case
	args := make([]any, 0, len(s.stmt.columns))
	var rejects []error
	for i := range b.Records {
		r := &b.Records[i]
		if s.cfg.Mode == Upsert && r.Value == nil && r.RawValue == nil {
			args, err = s.stmt.bind(args[:0], s.stmt.keys, r, true)
			if err == nil {
				_, err = tx.ExecContext(ctx, s.stmt.remove, args...)
			}
		} else {
			args, err = s.stmt.bind(args[:0], s.stmt.columns, r, false)
			if err == nil {
				_, err = insert.ExecContext(ctx, args...)
			}
		}
		if err == nil {
			continue
		}
		reason, bad := rejectReason(err)
		if !bad {
			return err
		}
		rejects = append(rejects, &connectors.RejectError{Index: i, Reason: reason, Err: err})
	}
	return errors.Join(rejects...)
}

// shapeError is a record that does not fit its columns.
type shapeError struct{ err error }

func (e *shapeError) Error() string { return e.err.Error() }
func (e *shapeError) Unwrap() error { return e.err }

func rejectReason(err error) (string, bool) {
	if _, ok := errors.AsType[*shapeError](err); ok {
		return "mapping", true
	}
	if isReject(err) {
		return "constraint", true
	}
	return "", false
}

// bind appends the values of the columns for one record.
func (p *plan) bind(args []any, columns []target, r *connectors.Record, deletion bool) ([]any, error) {
	for i := range columns {
		c := &columns[i]
		if deletion && c.from.fromValue() {
			return args, &shapeError{fmt.Errorf("null value deletes a row, but its key column %q is taken from the value; take it from the key", c.name)}
		}
		v, err := c.from.eval(r)
		if err == nil {
			v, err = convert(v, c.typ)
		}
		if err != nil {
			return args, &shapeError{fmt.Errorf("column %q: %w", c.name, err)}
		}
		args = append(args, v)
	}
	return args, nil
}

const insertReject = `INSERT INTO _millrace_rejects
	(sink, topic, topic_id, partition, "offset", timestamp, key, value, headers, reason, error, epoch, written_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT DO UPDATE SET reason = excluded.reason, error = excluded.error, epoch = excluded.epoch, written_at = excluded.written_at`

// writeRejects stores what cannot be stored as rows. The conflict clause is for
// positions that were set back by hand: the same record may be rejected again.
func (s *Sink) writeRejects(ctx context.Context, tx *sql.Tx, b *connectors.Batch) error {
	for i := range b.Rejects {
		r := &b.Rejects[i].Record
		rng := rangeOf(b, r.TP)
		if rng == nil {
			return fmt.Errorf("%w: reject %s offset %d is outside the batch's ranges", connectors.ErrConfig, r.TP, r.Offset)
		}
		headers, err := headersJSON(r.Headers)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, insertReject, s.cfg.Name, r.TP.Topic, rng.To.TopicID.String(), r.TP.Partition, r.Offset,
			r.Time.UnixMilli(), r.RawKey, r.RawValue, headers, b.Rejects[i].Reason, b.Rejects[i].Err, rng.Fence.Epoch, nowMs())
		if err != nil {
			return err
		}
	}
	return nil
}

func rangeOf(b *connectors.Batch, tp connectors.TP) *connectors.Range {
	for i := range b.Ranges {
		if b.Ranges[i].TP == tp {
			return &b.Ranges[i]
		}
	}
	return nil
}

// headersJSON writes headers as a list of [name, value]; a value that is not
// UTF-8 becomes {"base64": "..."}, null stays null.
func headersJSON(hs []connectors.Header) (any, error) {
	if len(hs) == 0 {
		return nil, nil
	}
	list := make([][2]any, len(hs))
	for i, h := range hs {
		list[i][0] = h.Key
		switch {
		case h.Value == nil:
		case utf8.Valid(h.Value):
			list[i][1] = string(h.Value)
		default:
			list[i][1] = map[string]string{"base64": base64.StdEncoding.EncodeToString(h.Value)}
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("headers as JSON: %w", err)
	}
	return string(text), nil
}
