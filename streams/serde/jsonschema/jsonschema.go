package jsonschema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/millrace/millrace/streams/serde"
)

// ErrInvalid reports a value that its schema does not allow; the error says where
// and why.
var ErrInvalid = errors.New("value does not follow its JSON schema")

// Serde is the JSON serde of T with a schema; it implements serde.Described.
type Serde[T any] struct {
	json   serde.Serde[T]
	schema *jsonschema.Schema
	text   string
	uses   []serde.Reference
	trust  bool
	err    error
}

// Opt is an option of New.
type Opt func(*options)

type options struct {
	uses  []serde.Reference
	trust bool
}

// Uses gives a schema that the schema refers to by this URL.
func Uses(url, schema string) Opt {
	return func(o *options) {
		o.uses = append(o.uses, serde.Reference{Name: url, Schema: serde.Schema{Kind: serde.JSONSchema, Text: schema}})
	}
}

// Unchecked leaves out the check of each value, and with it most of the time that
// this serde takes. The schema is for the registry only.
func Unchecked() Opt { return func(o *options) { o.trust = true } }

// New is the serde of T by a schema.
func New[T any](schema string, opts ...Opt) *Serde[T] {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s := &Serde[T]{json: serde.JSON[T](), text: schema, uses: o.uses, trust: o.trust}
	s.schema, s.err = compile(schema, o.uses)
	return s
}

// home is the address of a schema that has none; references without a host are
// relative to it.
const home = "schema:///schema.json"

func compile(text string, uses []serde.Reference) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	if err := addUses(c, uses); err != nil {
		return nil, err
	}
	if err := add(c, home, text); err != nil {
		return nil, err
	}
	schema, err := c.Compile(home)
	if err != nil {
		return nil, fmt.Errorf("jsonschema: %w", err)
	}
	return schema, nil
}

func addUses(c *jsonschema.Compiler, uses []serde.Reference) error {
	for _, use := range uses {
		if err := addUses(c, use.Schema.Uses); err != nil {
			return err
		}
		url := use.Name
		if !strings.Contains(url, ":") {
			url = "schema:///" + strings.TrimPrefix(url, "/")
		}
		if err := add(c, url, use.Schema.Text); err != nil {
			return fmt.Errorf("schema %s, which is referred to: %w", use.Name, err)
		}
	}
	return nil
}

func add(c *jsonschema.Compiler, url, text string) error {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = c.AddResource(url, doc)
	}
	if err != nil {
		return fmt.Errorf("jsonschema: %w", err)
	}
	return nil
}

// nowhere refuses to load what a schema refers to: neither files nor hosts are the
// business of a record.
type nowhere struct{}

// Load implements jsonschema.URLLoader.
func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not known: give it with Uses", url)
}

// Check implements serde.Checked.
func (s *Serde[T]) Check() error { return s.err }

// Append implements serde.Serde.
func (s *Serde[T]) Append(dst []byte, v T) ([]byte, error) {
	if s.err != nil {
		return dst, s.err
	}
	out, err := s.json.Append(dst, v)
	if err != nil {
		return dst, err
	}
	if err := s.validate(out[len(dst):]); err != nil {
		return dst, err
	}
	return out, nil
}

// Decode implements serde.Serde.
func (s *Serde[T]) Decode(b []byte) (T, error) {
	var none T
	if s.err != nil {
		return none, s.err
	}
	if err := s.validate(b); err != nil {
		return none, err
	}
	return s.json.Decode(b)
}

func (s *Serde[T]) validate(b []byte) error {
	if s.trust {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("jsonschema: %w", err)
	}
	if err := s.schema.Validate(doc); err != nil {
		return invalid(err)
	}
	return nil
}

// printer is only read.
var printer = message.NewPrinter(language.English)

// invalid names the places that are wrong, without the schema's address, which is
// made up.
func invalid(err error) error {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var wrong []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			walk(c)
		}
		if len(e.Causes) == 0 {
			wrong = append(wrong, fmt.Sprintf("/%s: %s", strings.Join(e.InstanceLocation, "/"), e.ErrorKind.LocalizedString(printer)))
		}
	}
	walk(v)
	return fmt.Errorf("%w: %s", ErrInvalid, strings.Join(wrong, "; "))
}

// Schema implements serde.Described. Its name is the title.
func (s *Serde[T]) Schema() (serde.Schema, error) {
	d := serde.Schema{Kind: serde.JSONSchema, Text: s.text, Uses: s.uses}
	if s.schema != nil {
		d.Name = s.schema.Title
	}
	return d, s.err
}

// WriterBy implements serde.Described. By another version of the schema, values
// are checked against that one.
func (s *Serde[T]) WriterBy(by serde.Schema) (func(dst []byte, v T) ([]byte, error), error) {
	if s.err != nil {
		return nil, s.err
	}
	if by.Text == s.text {
		return s.Append, nil
	}
	other := &Serde[T]{json: s.json, trust: s.trust}
	other.schema, other.err = compile(by.Text, by.Uses)
	return other.Append, other.err
}

// ReaderOf implements serde.Described.
func (s *Serde[T]) ReaderOf(serde.Schema) (func(b []byte) (T, error), error) { return s.Decode, s.err }
