package file

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// rows yields the values of a file one by one; io.EOF after the last.
type rows interface {
	next() ([]byte, error)
}

// counted counts the bytes that were read from the file, for progress.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// plain returns the uncompressed bytes. gzip is recognised by its magic number.
func plain(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	return bufio.NewReaderSize(z, 64<<10), nil
}

// budget is a reader that refuses to read more than one record may have. The
// rows refill it after each record, so that no record can take more memory.
type budget struct {
	r    io.Reader
	left int64
	max  int
}

func (b *budget) refill() { b.left = int64(b.max) + 64<<10 } // decoders read ahead

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("a record of more than %d bytes", b.max)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

// openRows starts reading values of a format.
func openRows(r io.Reader, f Format, maxBytes int) (rows, error) {
	text, err := plain(r)
	if err != nil {
		return nil, err
	}
	limit := &budget{r: text, max: maxBytes}
	limit.refill()
	if f == CSV {
		return newCSV(limit)
	}
	return newJSON(text, limit)
}

// jsonRows reads one array, or values one after the other.
type jsonRows struct {
	dec   *json.Decoder
	limit *budget
	array bool
	end   bool
}

func newJSON(text *bufio.Reader, limit *budget) (*jsonRows, error) {
	j := &jsonRows{dec: json.NewDecoder(limit), limit: limit}
	for { // look at the first byte that is no space
		b, err := text.ReadByte()
		if errors.Is(err, io.EOF) {
			j.end = true
			return j, nil
		}
		if err != nil {
			return nil, err
		}
		if b == ' ' || b == '\t' || b == '\r' || b == '\n' {
			continue
		}
		if err := text.UnreadByte(); err != nil {
			return nil, err
		}
		j.array = b == '['
		break
	}
	if j.array {
		if _, err := j.dec.Token(); err != nil {
			return nil, fmt.Errorf("json: %w", err)
		}
	}
	return j, nil
}

func (j *jsonRows) next() ([]byte, error) {
	if j.end {
		return nil, io.EOF
	}
	j.limit.refill()
	if j.array && !j.dec.More() {
		if _, err := j.dec.Token(); err != nil { // the closing bracket
			return nil, fmt.Errorf("json: at byte %d: %w", j.dec.InputOffset(), noEOF(err))
		}
		j.end = true
		if _, err := j.dec.Token(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("json: more after the array, at byte %d", j.dec.InputOffset())
		}
		return nil, io.EOF
	}
	var raw json.RawMessage
	if err := j.dec.Decode(&raw); err != nil {
		if errors.Is(err, io.EOF) && !j.array {
			j.end = true
			return nil, io.EOF
		}
		return nil, fmt.Errorf("json: at byte %d: %w", j.dec.InputOffset(), noEOF(err))
	}
	return raw, nil
}

// noEOF keeps a file that was cut off from looking like one that has ended.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// csvRows reads lines under a header.
type csvRows struct {
	r     *csv.Reader
	limit *budget
	names [][]byte // as JSON strings
}

func newCSV(limit *budget) (*csvRows, error) {
	c := &csvRows{r: csv.NewReader(limit), limit: limit}
	c.r.ReuseRecord = true
	header, err := c.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("csv: no header line")
	}
	if err != nil {
		return nil, fmt.Errorf("csv: header: %w", err)
	}
	seen := map[string]bool{}
	for i, name := range header {
		if i == 0 {
			name = string(bytes.TrimPrefix([]byte(name), []byte("\ufeff")))
		}
		if seen[name] {
			return nil, fmt.Errorf("csv: header: column %q is there twice", name)
		}
		seen[name] = true
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("csv: header: %w", err)
		}
		c.names = append(c.names, quoted)
	}
	return c, nil
}

func (c *csvRows) next() ([]byte, error) {
	c.limit.refill()
	cells, err := c.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	out := []byte{'{'}
	for i, cell := range cells {
		if i > 0 {
			out = append(out, ',')
		}
		quoted, err := json.Marshal(cell)
		if err != nil {
			return nil, fmt.Errorf("csv: %w", err)
		}
		out = append(append(append(out, c.names[i]...), ':'), quoted...)
	}
	return append(out, '}'), nil
}
