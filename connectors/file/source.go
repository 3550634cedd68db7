package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/millrace/millrace/connectors"
)

// Source reads files. It holds no state and is safe for concurrent use.
type Source struct{ cfg Config }

var _ connectors.Source = (*Source)(nil)

// New returns a source for the settings; nothing is opened yet.
func New(c Config) (*Source, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Source{cfg: c.withDefaults()}, nil
}

// Spec tells that a file can be read from any record again, so that the log is
// exactly once.
func (s *Source) Spec() connectors.Spec {
	return connectors.Spec{Connector: "file", Name: s.cfg.Name, Class: connectors.Transactional}
}

// Check looks whether the files are there and can be read.
func (s *Source) Check(context.Context) []connectors.Issue {
	var out []connectors.Issue
	for i, path := range s.cfg.Paths {
		f, _, err := identify(path)
		if err != nil {
			out = append(out, connectors.Issue{Field: fmt.Sprintf("Paths[%d]", i), Text: err.Error(), Fatal: true})
			continue
		}
		_ = f.Close() // read only
	}
	return out
}

// Parts returns one part per path, named by the path as it was given.
func (s *Source) Parts(context.Context) ([]connectors.SourcePart, error) {
	out := make([]connectors.SourcePart, len(s.cfg.Paths))
	for i, p := range s.cfg.Paths {
		out[i] = connectors.SourcePart{Name: p}
	}
	return out, nil
}

// position is the stored state.
type position struct {
	Next int64  `json:"next"` // number of the next record, from 0
	Size int64  `json:"size"` // of the file as it lies there, in bytes
	Head string `json:"head"` // SHA-256 of its first kilobyte
}

func (p position) same(q position) bool { return p.Size == q.Size && p.Head == q.Head }

// identify opens a file and returns its identity.
func identify(path string) (*os.File, position, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, position{}, fmt.Errorf("file: %w", err)
	}
	id, err := identity(f)
	if err != nil {
		return nil, position{}, errors.Join(fmt.Errorf("file: %s: %w", path, err), f.Close())
	}
	return f, id, nil
}

func identity(f *os.File) (position, error) {
	info, err := f.Stat()
	if err != nil {
		return position{}, err
	}
	if !info.Mode().IsRegular() {
		return position{}, errors.New("not a regular file")
	}
	head := make([]byte, 1024)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return position{}, err
	}
	sum := sha256.Sum256(head[:n])
	return position{Size: info.Size(), Head: hex.EncodeToString(sum[:])}, nil
}

// Open starts with the record after the stored position.
func (s *Source) Open(ctx context.Context, part connectors.SourcePart, at *connectors.SourcePos) (connectors.Reader, error) {
	f, id, err := identify(part.Name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", connectors.ErrConfig, err)
	}
	r := &reader{cfg: &s.cfg, path: part.Name, file: f, at: id}
	if err := r.start(ctx, at); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: file: %s: %w", connectors.ErrConfig, part.Name, err), f.Close())
	}
	return r, nil
}

// reader reads one file; owned by one goroutine.
type reader struct {
	cfg   *Config
	path  string
	file  *os.File
	in    *counted
	rows  rows
	at    position // Next = records handed out or skipped
	ahead []byte   // the next value, read to know whether the unit before is the last
	ended bool     // there is no next value
	done  bool     // the last unit was handed out
}

// start skips to the stored position and reads one value ahead.
func (r *reader) start(ctx context.Context, at *connectors.SourcePos) error {
	var stored position
	if at != nil {
		if err := json.Unmarshal(at.State, &stored); err != nil {
			return fmt.Errorf("stored position: %w", err)
		}
		if !stored.same(r.at) {
			return fmt.Errorf("the file has changed since record %d was read: size %d, was %d; first kilobyte %.12s…, was %.12s…",
				stored.Next, r.at.Size, stored.Size, r.at.Head, stored.Head)
		}
	}
	format, err := r.cfg.format(r.path)
	if err != nil {
		return err
	}
	r.in = &counted{r: r.file}
	if r.rows, err = openRows(r.in, format, r.cfg.MaxRecordBytes); err != nil {
		return err
	}
	for r.at.Next < stored.Next {
		if r.at.Next%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := r.rows.next(); err != nil {
			return fmt.Errorf("skipping to record %d, at record %d: %w", stored.Next, r.at.Next, noEOF(err))
		}
		r.at.Next++
	}
	return r.peek()
}

// peek reads the next value ahead.
func (r *reader) peek() error {
	v, err := r.rows.next()
	if errors.Is(err, io.EOF) {
		r.ended, r.ahead = true, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", r.at.Next, err)
	}
	r.ahead = v
	return nil
}

// Next returns up to UnitRecords records. The last unit's position is Done.
func (r *reader) Next(ctx context.Context) (connectors.Unit, error) {
	if r.done {
		return connectors.Unit{}, io.EOF
	}
	u := connectors.Unit{Total: r.at.Size}
	for !r.ended && len(u.Records) < r.cfg.UnitRecords {
		if err := ctx.Err(); err != nil {
			return connectors.Unit{}, err
		}
		rec, err := r.record(r.ahead)
		if err != nil {
			return connectors.Unit{}, fmt.Errorf("%w: file: %s: record %d: %w", connectors.ErrConfig, r.path, r.at.Next, err)
		}
		u.Records = append(u.Records, rec)
		r.at.Next++
		if err := r.peek(); err != nil {
			return connectors.Unit{}, fmt.Errorf("%w: file: %s: %w", connectors.ErrConfig, r.path, err)
		}
	}
	if r.ended { // a file that changed while it was read has no numbering to store
		now, err := identity(r.file)
		if err == nil && !now.same(r.at) {
			err = errors.New("the file changed while it was read")
		}
		if err != nil {
			return connectors.Unit{}, fmt.Errorf("%w: file: %s: %w", connectors.ErrConfig, r.path, err)
		}
		r.done = true
	}
	state, err := json.Marshal(r.at)
	if err != nil {
		return connectors.Unit{}, fmt.Errorf("file: position: %w", err)
	}
	u.Pos = connectors.SourcePos{State: state, Done: r.done}
	u.Read = min(r.in.n, u.Total)
	return u, nil
}

// record makes the record of one value.
func (r *reader) record(value []byte) (connectors.Produced, error) {
	out := connectors.Produced{Topic: r.cfg.Topic, Partition: -1, Value: value}
	row := Row{Number: r.at.Next, Value: value}
	if r.cfg.Key == nil && r.cfg.Time == nil {
		out.Time = time.Now()
		return out, nil
	}
	if len(value) > 0 && value[0] == '{' {
		if err := json.Unmarshal(value, &row.fields); err != nil {
			return out, err
		}
	}
	var err error
	if r.cfg.Key != nil {
		if out.Key, err = r.cfg.Key(row); err != nil {
			return out, err
		}
	}
	out.Time = time.Now()
	if r.cfg.Time != nil {
		out.Time, err = r.cfg.Time(row)
	}
	return out, err
}

// Committed has nothing to tell a file.
func (r *reader) Committed(context.Context, connectors.SourcePos) error { return nil }

// Close closes the file.
func (r *reader) Close() error { return r.file.Close() }
