package operator

import "github.com/millrace/millrace/streams/serde"

// Codec is a serde with the handling of null around it. The topology fills it
// in when it is built; tasks only read it.
type Codec[T any] struct {
	Serde serde.Serde[T]
	nils  Nil[T]
}

// NewCodec wraps a serde.
func NewCodec[T any](s serde.Serde[T]) Codec[T] { return Codec[T]{s, NilOf[T]()} }

// Decode decodes b, where nil is null, into *v.
func (c *Codec[T]) Decode(b []byte, v *T) (null bool, err error) {
	if b == nil {
		var zero T
		*v = zero
		return true, nil
	}
	*v, err = c.Serde.Decode(b)
	return false, err
}

// Append appends the encoding of *v, which is not null.
func (c *Codec[T]) Append(dst []byte, v *T) ([]byte, error) { return c.Serde.Append(dst, *v) }

// buffer returns an empty slice that is not nil: nil would be null.
func buffer() []byte { return make([]byte, 0, 64) }
