package record

// DefaultMaxDecompressed is how many bytes the records of one batch may take once they are decompressed, where the caller
// sets no limit. A batch of the usual 1 MiB at most, packed as well as 128 to 1, stays below it.
const DefaultMaxDecompressed = 128 << 20

// keepDecompressed is the size up to which a Scratch keeps its buffer for the next batch.
const keepDecompressed = 8 << 20

// Scratch is the working memory that reading a batch needs: a buffer for decompressed records, a reader, a slice of
// headers. Used again for batch after batch it makes reading free of allocation. The zero value is ready. It serves one
// batch at a time and is not safe for concurrent use; what a reader gave out is valid until the next use of its Scratch.
type Scratch struct {
	// MaxDecompressed bounds the decompressed records of one batch, in bytes; 0 means [DefaultMaxDecompressed].
	MaxDecompressed int

	buf     []byte
	headers []Header
	reader  Reader
}

// Release lets a buffer go that one large batch has grown. Who keeps a Scratch for long (one per connection, say) calls it
// between batches; [Batch.Validate] does so itself.
func (s *Scratch) Release() {
	if cap(s.buf) > keepDecompressed {
		s.buf = nil
	}
}

func (s *Scratch) limit() int {
	if s.MaxDecompressed > 0 {
		return s.MaxDecompressed
	}
	return DefaultMaxDecompressed
}

// records gives the records of b, decompressed if need be, at most limit bytes of them.
func (s *Scratch) records(b Batch, limit int) ([]byte, error) {
	codec := b.Attributes().Codec()
	if codec == None {
		return b.payload(), nil
	}
	out, err := decompress(codec, s.buf[:0], b.payload(), limit)
	if cap(out) > cap(s.buf) {
		s.buf = out[:0]
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
