package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/millrace/millrace/connectors"
)

// raise is the take-over: one statement that both checks and writes the fence.
// It leaves the position as it is, and returns no row when the stored epoch is
// not lower, except for a repeat of the very same fence.
const raise = `INSERT INTO _millrace_offsets
	(sink, topic, topic_id, partition, next_offset, leader_epoch, epoch, seq, owner, written_at)
	VALUES (?1, ?2, ?3, ?4, -1, -1, ?5, 0, ?6, ?7)
	ON CONFLICT DO UPDATE SET epoch = excluded.epoch, owner = excluded.owner, written_at = excluded.written_at
	WHERE epoch < excluded.epoch OR (epoch = excluded.epoch AND owner = excluded.owner)
	RETURNING topic_id, next_offset, leader_epoch, seq, meta`

// Open takes over the partitions, all or none.
func (s *Sink) Open(ctx context.Context, as []connectors.Assignment) ([]connectors.Position, error) {
	out := make([]connectors.Position, len(as))
	err := s.inTx(ctx, "open", func(tx *sql.Tx) error {
		for i, a := range as {
			var err error
			if out[i], err = s.raise(ctx, tx, a); err != nil {
				return err
			}
		}
		return connectors.Reach(ctx, connectors.PointFence)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Sink) raise(ctx context.Context, tx *sql.Tx, a connectors.Assignment) (connectors.Position, error) {
	row := tx.QueryRowContext(ctx, raise, s.cfg.Name, a.TP.Topic, connectors.TopicID{}.String(), a.TP.Partition,
		a.Fence.Epoch, a.Fence.Owner, nowMs())
	p, err := scanPosition(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return p, s.fenced(ctx, tx, a)
	}
	return p, err
}

// fenced reads what the store holds, to tell the loser.
func (s *Sink) fenced(ctx context.Context, tx *sql.Tx, a connectors.Assignment) error {
	stored, _, err := s.stored(ctx, tx, a.TP)
	if err != nil {
		return err
	}
	return &connectors.FencedError{TP: a.TP, Mine: a.Fence, Stored: stored}
}

// stored returns fence and position of a partition; epoch -1 when there is no
// row.
func (s *Sink) stored(ctx context.Context, tx *sql.Tx, tp connectors.TP) (connectors.Fence, connectors.Position, error) {
	f := connectors.Fence{Epoch: -1}
	p, err := scanPosition(func(dest ...any) error {
		return tx.QueryRowContext(ctx, `SELECT topic_id, next_offset, leader_epoch, seq, meta, epoch, owner
			FROM _millrace_offsets WHERE sink = ? AND topic = ? AND partition = ?`,
			s.cfg.Name, tp.Topic, tp.Partition).Scan(append(dest, &f.Epoch, &f.Owner)...)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return connectors.Fence{Epoch: -1}, connectors.NoPosition, nil
	}
	return f, p, err
}

func scanPosition(scan func(...any) error) (connectors.Position, error) {
	var p connectors.Position
	var id string
	if err := scan(&id, &p.Next, &p.LeaderEpoch, &p.Seq, &p.Meta); err != nil {
		return connectors.NoPosition, err
	}
	var err error
	p.TopicID, err = connectors.ParseTopicID(id)
	if err != nil {
		return connectors.NoPosition, fmt.Errorf("%w: _millrace_offsets: %w", connectors.ErrConfig, err)
	}
	return p, nil
}

// move writes the position and, with the same statement, checks the fence and
// the old position. It writes epoch and owner too, the very cells a take-over
// writes.
const move = `UPDATE _millrace_offsets SET
	topic_id = ?1, next_offset = ?2, leader_epoch = ?3, seq = ?4, meta = ?5, written_at = ?6, epoch = ?7, owner = ?8
	WHERE sink = ?9 AND topic = ?10 AND partition = ?11 AND epoch = ?7 AND owner = ?8 AND next_offset = ?12 AND seq = ?13`

// advance moves the positions of all ranges, or says why one of them cannot
// move.
func (s *Sink) advance(ctx context.Context, tx *sql.Tx, ranges []connectors.Range) error {
	for i := range ranges {
		r := &ranges[i]
		res, err := tx.ExecContext(ctx, move, r.To.TopicID.String(), r.To.Next, r.To.LeaderEpoch, r.To.Seq, r.To.Meta, nowMs(),
			r.Fence.Epoch, r.Fence.Owner, s.cfg.Name, r.TP.Topic, r.TP.Partition, r.From.Next, r.From.Seq)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return err
		}
		if n != 1 {
			return s.refused(ctx, tx, r)
		}
	}
	return nil
}

func (s *Sink) refused(ctx context.Context, tx *sql.Tx, r *connectors.Range) error {
	fence, at, err := s.stored(ctx, tx, r.TP)
	if err != nil {
		return err
	}
	if fence != r.Fence {
		return &connectors.FencedError{TP: r.TP, Mine: r.Fence, Stored: fence}
	}
	return fmt.Errorf("%w: %s: the batch starts at offset %d (commit %d), the store is at offset %d (commit %d)",
		connectors.ErrStale, r.TP, r.From.Next, r.From.Seq, at.Next, at.Seq)
}

// Positions lists this sink's rows.
func (s *Sink) Positions(ctx context.Context) (out []connectors.StoredPosition, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT topic, partition, epoch, owner, topic_id, next_offset, leader_epoch, seq, meta
		FROM _millrace_offsets WHERE sink = ? ORDER BY topic, partition`, s.cfg.Name)
	if err != nil {
		return nil, classify("positions", err)
	}
	defer closeRows(rows, &err)
	for rows.Next() {
		var row connectors.StoredPosition
		row.Position, err = scanPosition(func(dest ...any) error {
			return rows.Scan(append([]any{&row.TP.Topic, &row.TP.Partition, &row.Fence.Epoch, &row.Fence.Owner}, dest...)...)
		})
		if err != nil {
			return nil, classify("positions", err)
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// SetPositions takes over and replaces positions. The sequence of commits goes
// on, so that a batch of the time before matches nothing.
func (s *Sink) SetPositions(ctx context.Context, rows []connectors.StoredPosition) error {
	return s.inTx(ctx, "set positions", func(tx *sql.Tx) error {
		for _, row := range rows {
			old, err := s.raise(ctx, tx, connectors.Assignment{TP: row.TP, Fence: row.Fence})
			if err != nil {
				return err
			}
			to := row.Position
			to.Seq = old.Seq + 1
			if err := s.advance(ctx, tx, []connectors.Range{{TP: row.TP, Fence: row.Fence, From: old, To: to}}); err != nil {
				return err
			}
		}
		return nil
	})
}
