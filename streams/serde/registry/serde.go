package registry

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/streams/serde"
)

// Of is the serde s with a registry: what it writes carries the number of its
// schema, and what it reads may be written by another version. Register it for a
// type, or give it to an operator; used elsewhere, it needs ForTopic (package
// serde) first, or a Subject.
func Of[T any](c *Client, s serde.Described[T], opts ...Opt) serde.Serde[T] {
	o, err := collect(opts)
	if c == nil {
		err = errors.Join(err, errors.New("registry: the client is nil"))
	}
	f := &framed[T]{client: c, inner: s, opts: o, err: err, readers: new(readers[T])}
	if checked, ok := s.(serde.Checked); ok && f.err == nil {
		f.err = checked.Check()
	}
	return f
}

const (
	magic      = 0
	magicGUID  = 1 // the schema's GUID, in a header of the record: Confluent Platform 8
	headerSize = 5 // magic and number
)

// framed is a serde for one topic, or for none yet. All for the same type share
// their readers.
type framed[T any] struct {
	client  *Client
	inner   serde.Described[T]
	opts    options
	err     error // a mistake in how it was made
	topic   string
	part    serde.Part
	readers *readers[T]

	writer   atomic.Pointer[writer[T]]
	settling sync.Mutex
}

// writer appends records of one schema.
type writer[T any] struct {
	header [headerSize]byte
	append func([]byte, T) ([]byte, error)
}

// Check implements serde.Checked.
func (f *framed[T]) Check() error { return f.err }

// ForTopic implements serde.Topical.
func (f *framed[T]) ForTopic(topic string, part serde.Part) serde.Serde[T] {
	return &framed[T]{client: f.client, inner: f.inner, opts: f.opts, err: f.err, topic: topic, part: part, readers: f.readers}
}

// Prepare implements serde.Prepared: it finds the number of the schema.
func (f *framed[T]) Prepare(ctx context.Context) error {
	_, err := f.settle(ctx)
	return err
}

// Append implements serde.Serde.
func (f *framed[T]) Append(dst []byte, v T) ([]byte, error) {
	w := f.writer.Load()
	if w == nil {
		var err error
		if w, err = f.settle(context.Background()); err != nil {
			return dst, err
		}
	}
	out, err := w.append(append(dst, w.header[:]...), v)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// settle decides by which schema records are written, once.
func (f *framed[T]) settle(ctx context.Context) (*writer[T], error) {
	if f.err != nil {
		return nil, f.err
	}
	f.settling.Lock()
	defer f.settling.Unlock()
	if w := f.writer.Load(); w != nil {
		return w, nil
	}
	own, err := f.inner.Schema()
	if err != nil {
		return nil, err
	}
	subject, err := f.opts.subjectOf(f.topic, f.part, own.Name)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	use := numbered{schema: own}
	if f.opts.useLatest {
		use, err = f.client.latestOf(ctx, subject)
	} else {
		use.id, err = f.client.idOf(ctx, subject, own, f.opts)
	}
	if err != nil {
		return nil, err
	}
	if err := sameKind(own, use); err != nil {
		return nil, fmt.Errorf("subject %s: %w", subject, err)
	}
	w := new(writer[T])
	if w.append, err = f.inner.WriterBy(use.schema); err != nil {
		return nil, fmt.Errorf("subject %s, schema %d: %w", subject, use.id, err)
	}
	w.header[0] = magic
	binary.BigEndian.PutUint32(w.header[1:], uint32(use.id))
	f.writer.Store(w)
	return w, nil
}

func sameKind(own serde.Schema, other numbered) error {
	if own.Kind == other.schema.Kind {
		return nil
	}
	return fmt.Errorf("schema %d is of kind %s, this serde is of kind %s", other.id, other.schema.Kind, own.Kind)
}

// Decode implements serde.Serde.
func (f *framed[T]) Decode(b []byte) (T, error) {
	var none T
	if len(b) < headerSize || b[0] != magic {
		return none, frameError(b)
	}
	id := int(binary.BigEndian.Uint32(b[1:]))
	read, err := f.readers.of(id, f)
	if err != nil {
		return none, err
	}
	v, err := read(b[headerSize:])
	if err != nil {
		return none, fmt.Errorf("schema %d: %w", id, err)
	}
	return v, nil
}

func frameError(b []byte) error {
	switch {
	case len(b) > 0 && b[0] == magicGUID:
		return fmt.Errorf("%w: it names its schema by a GUID in a header, which is not read here: write it with the number in the value", ErrNotFramed)
	case len(b) > 0 && b[0] != magic:
		return fmt.Errorf("%w: it begins with byte %#x in place of 0; was it written without a registry?", ErrNotFramed, b[0])
	}
	return fmt.Errorf("%w: it has %d bytes, at least %d are needed", ErrNotFramed, len(b), headerSize)
}

// readers decode what was written by each schema, by its number. The map is
// replaced, never changed: to read it takes no lock.
type readers[T any] struct {
	known  atomic.Pointer[map[int]func([]byte) (T, error)]
	adding sync.Mutex
	asking memos[int, func([]byte) (T, error)]
}

func (r *readers[T]) of(id int, f *framed[T]) (func([]byte) (T, error), error) {
	if known := r.known.Load(); known != nil {
		if read, ok := (*known)[id]; ok {
			return read, nil
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	read, err := r.asking.at(id).get(func() (func([]byte) (T, error), error) { return f.readerOf(id) })
	if err != nil {
		return nil, err
	}
	r.add(id, read)
	return read, nil
}

func (r *readers[T]) add(id int, read func([]byte) (T, error)) {
	r.adding.Lock()
	defer r.adding.Unlock()
	next := map[int]func([]byte) (T, error){}
	if known := r.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	next[id] = read
	r.known.Store(&next)
}

func (f *framed[T]) readerOf(id int) (func([]byte) (T, error), error) {
	own, err := f.inner.Schema()
	if err != nil {
		return nil, err
	}
	written, err := f.client.schemaByID(context.Background(), id)
	if err != nil {
		return nil, err
	}
	if err := sameKind(own, numbered{id, written}); err != nil {
		return nil, err
	}
	read, err := f.inner.ReaderOf(written)
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", id, err)
	}
	return read, nil
}
