package avro

import (
	"fmt"

	"github.com/hamba/avro/v2"

	"github.com/millrace/millrace/streams/serde"
)

// Opt is an option of New.
type Opt func(*options)

type options struct {
	fingerprint bool
	since       []string
	uses        []serde.Reference
}

// Uses names a schema that the schema refers to, by its full name. Several are
// given in an order in which each knows the ones that it needs.
func Uses(name, schema string) Opt {
	return func(o *options) {
		o.uses = append(o.uses, serde.Reference{Name: name, Schema: serde.Schema{Kind: serde.Avro, Name: name, Text: schema}})
	}
}

// parse reads a schema on its own: the library's default cache would let schemas
// of the same name in one process see each other.
func parse(text string, uses []serde.Reference) (avro.Schema, error) {
	cache := new(avro.SchemaCache)
	for _, use := range uses {
		if err := parseUse(use, cache); err != nil {
			return nil, err
		}
	}
	schema, err := avro.ParseWithCache(text, "", cache)
	if err != nil {
		return nil, fmt.Errorf("avro: schema: %w", err)
	}
	return schema, nil
}

func parseUse(use serde.Reference, cache *avro.SchemaCache) error {
	for _, below := range use.Schema.Uses {
		if err := parseUse(below, cache); err != nil {
			return err
		}
	}
	if _, err := avro.ParseWithCache(use.Schema.Text, "", cache); err != nil {
		return fmt.Errorf("avro: schema %s, which is referred to: %w", use.Name, err)
	}
	return nil
}
