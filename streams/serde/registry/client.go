package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/millrace/millrace/streams/serde"
)

// Client is the connection to a registry, with what is known of it. It is for any
// number of serdes and goroutines. It has nothing to close.
type Client struct {
	sr      *sr.Client
	where   string
	timeout time.Duration

	byID   memos[int, serde.Schema]
	ids    memos[question, int]
	latest memos[string, numbered]
}

// question is what the number of a schema is asked for by.
type question struct {
	subject, kind, text string
	register, normalize bool
}

// numbered is a schema with its number.
type numbered struct {
	id     int
	schema serde.Schema
}

// Open makes a client. It does not talk to the registry yet.
func Open(c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.settled()
	opts := []sr.ClientOpt{sr.URLs(c.URLs...), sr.HTTPClient(c.httpClient()), sr.UserAgent("millrace")}
	if c.User != "" {
		opts = append(opts, sr.BasicAuth(c.User, c.Password))
	}
	if c.Token != "" {
		opts = append(opts, sr.BearerToken(c.Token))
	}
	if c.Context != "" {
		opts = append(opts, sr.DefaultSchemaContext(c.Context))
	}
	client, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return &Client{sr: client, where: strings.Join(c.URLs, ","), timeout: c.Timeout}, nil
}

// firstPause is the pause before the second try of a request; it doubles.
const firstPause = 20 * time.Millisecond

// try sends a request until it is answered, its time is up, or trying again can
// not help.
func try[T any](ctx context.Context, c *Client, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var before error // of the last try that had an answer: it says more than that time is up
	for pause := firstPause; ; pause *= 2 {
		v, err := request(ctx)
		if err == nil {
			return v, nil
		}
		if before != nil && ctx.Err() != nil {
			return v, before
		}
		err, again := classify(err)
		err = fmt.Errorf("registry %s: %w", c.where, err)
		if !again {
			return v, err
		}
		before = err
		select {
		case <-ctx.Done():
			return v, err
		case <-time.After(pause):
		}
	}
}

// maxDepth is how far schemas may refer to others; a circle ends here.
const maxDepth = 20

// schemaByID is the schema with a number, with all that it refers to.
func (c *Client) schemaByID(ctx context.Context, id int) (serde.Schema, error) {
	return c.byID.at(id).get(func() (serde.Schema, error) {
		s, err := try(ctx, c, func(ctx context.Context) (sr.Schema, error) { return c.sr.SchemaByID(ctx, id) })
		if errors.Is(err, ErrNotRegistered) {
			return serde.Schema{}, fmt.Errorf("%w: %d: %w", ErrUnknownSchema, id, err)
		}
		if err != nil {
			return serde.Schema{}, fmt.Errorf("schema %d: %w", id, err)
		}
		whole, err := c.withUses(ctx, s, 0)
		if err != nil {
			return whole, fmt.Errorf("schema %d: %w", id, err)
		}
		return whole, nil
	})
}

// withUses fetches what a schema refers to.
func (c *Client) withUses(ctx context.Context, s sr.Schema, depth int) (serde.Schema, error) {
	out := serde.Schema{Kind: serde.Kind(s.Type.String()), Text: s.Schema}
	if depth > maxDepth {
		return out, fmt.Errorf("references are more than %d deep", maxDepth)
	}
	for _, ref := range s.References {
		one, err := try(ctx, c, func(ctx context.Context) (sr.SubjectSchema, error) {
			return c.sr.SchemaByVersion(ctx, ref.Subject, ref.Version)
		})
		if err != nil {
			return out, fmt.Errorf("reference %s, subject %s version %d: %w", ref.Name, ref.Subject, ref.Version, err)
		}
		used, err := c.withUses(ctx, one.Schema, depth+1)
		if err != nil {
			return out, fmt.Errorf("reference %s: %w", ref.Name, err)
		}
		out.Uses = append(out.Uses, serde.Reference{Name: ref.Name, Schema: used})
	}
	return out, nil
}

// idOf is the number of a schema under a subject; what is not there is registered,
// if wanted.
func (c *Client) idOf(ctx context.Context, subject string, s serde.Schema, o options) (int, error) {
	q := question{subject: subject, kind: string(s.Kind), text: s.Text, register: o.register, normalize: o.normalize}
	return c.ids.at(q).get(func() (int, error) {
		found, err := c.place(ctx, subject, s, o, 0)
		return found.ID, err
	})
}

// place looks a schema up, or registers it, after all that it refers to. A
// reference's subject is its name, as Confluent's serializers have it.
func (c *Client) place(ctx context.Context, subject string, s serde.Schema, o options, depth int) (sr.SubjectSchema, error) {
	if depth > maxDepth {
		return sr.SubjectSchema{}, fmt.Errorf("references are more than %d deep", maxDepth)
	}
	ask := sr.Schema{Schema: s.Text}
	if err := ask.Type.UnmarshalText([]byte(s.Kind)); err != nil {
		return sr.SubjectSchema{}, err
	}
	for _, use := range s.Uses {
		placed, err := c.place(ctx, use.Name, use.Schema, o, depth+1)
		if err != nil {
			return placed, err
		}
		ask.References = append(ask.References, sr.SchemaReference{Name: use.Name, Subject: use.Name, Version: placed.Version})
	}
	if o.normalize {
		ctx = sr.WithParams(ctx, sr.Normalize)
	}
	if o.register {
		// The answer has the number only; the version matters for references.
		id, err := try(ctx, c, func(ctx context.Context) (int, error) { return c.sr.RegisterSchema(ctx, subject, ask, -1, -1) })
		if err != nil {
			return sr.SubjectSchema{}, fmt.Errorf("register under subject %s: %w", subject, err)
		}
		if depth == 0 {
			return sr.SubjectSchema{ID: id}, nil
		}
	}
	found, err := try(ctx, c, func(ctx context.Context) (sr.SubjectSchema, error) { return c.sr.LookupSchema(ctx, subject, ask) })
	if err != nil {
		return found, fmt.Errorf("look up under subject %s: %w", subject, err)
	}
	return found, nil
}

// latestOf is the latest schema of a subject. It is asked for once: all records
// that a process writes to a topic have the same.
func (c *Client) latestOf(ctx context.Context, subject string) (numbered, error) {
	return c.latest.at(subject).get(func() (numbered, error) {
		found, err := try(ctx, c, func(ctx context.Context) (sr.SubjectSchema, error) { return c.sr.SchemaByVersion(ctx, subject, -1) })
		if err != nil {
			return numbered{}, fmt.Errorf("latest of subject %s: %w", subject, err)
		}
		s, err := c.withUses(ctx, found.Schema, 0)
		if err != nil {
			return numbered{}, fmt.Errorf("latest of subject %s: %w", subject, err)
		}
		return numbered{found.ID, s}, nil
	})
}
