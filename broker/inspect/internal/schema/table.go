package schema

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed records.jsonl
var text []byte

// Where the layouts come from: the module of Apache Kafka that writes them.
const (
	Clients      = "kafka-clients"
	Groups       = "kafka-group-coordinator"
	Metadata     = "kafka-metadata"
	Quorum       = "kafka-raft"
	Share        = "kafka-share-coordinator"
	Storage      = "kafka-storage"
	Transactions = "kafka-transaction-coordinator"
)

type key struct {
	from   string
	number int16
	suffix string
}

type table struct {
	byName map[string]*Schema
	byKey  map[key]*Schema
}

// load reads the table once; it is part of the program, so an error in it is one of the program.
var load = sync.OnceValue(func() *table {
	t := &table{byName: map[string]*Schema{}, byKey: map[key]*Schema{}}
	for line := range bytes.Lines(text) {
		s, err := parse(line)
		if err != nil {
			panic(fmt.Sprintf("schema: records.jsonl: %v", err))
		}
		t.byName[s.Name] = s
		t.byKey[key{s.From, s.Key, suffix(s.Name)}] = s
	}
	return t
})

// suffix tells keys from values, which share their number.
func suffix(name string) string {
	for _, s := range []string{"Key", "Value"} {
		if strings.HasSuffix(name, s) {
			return s
		}
	}
	return ""
}

// Named gives the type of that name, nil when there is none.
func Named(name string) *Schema { return load().byName[name] }

// KeyOf gives the layout of a record's key by the number that it begins with, nil when the number is not known.
func KeyOf(from string, number int16) *Schema { return load().byKey[key{from, number, "Key"}] }

// ValueOf gives the layout of the value that belongs to a key.
func ValueOf(from string, number int16) *Schema { return load().byKey[key{from, number, "Value"}] }

// RecordOf gives the layout of a record that has no key, by the number in its frame.
func RecordOf(from string, number int16) *Schema { return load().byKey[key{from, number, ""}] }

func parse(line []byte) (*Schema, error) {
	var row struct {
		Name, From string
		APIKey     int16 `json:"api_key"`
		Versions   map[string]json.RawMessage
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, err
	}
	s := &Schema{Name: row.Name, From: row.From, Key: row.APIKey, versions: map[int16][]field{}}
	for v, raw := range row.Versions {
		n, err := strconv.ParseInt(v, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%s: version %q", s.Name, v)
		}
		if s.versions[int16(n)], err = parseFields(raw); err != nil {
			return nil, fmt.Errorf("%s version %d: %w", s.Name, n, err)
		}
	}
	return s, nil
}

func parseFields(raw json.RawMessage) ([]field, error) {
	var rows []struct {
		Name string
		Type json.RawMessage
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, err
	}
	out := make([]field, 0, len(rows))
	for _, r := range rows {
		f := field{name: r.Name}
		var err error
		if r.Name == tagged {
			f.tags, err = parseTags(r.Type)
		} else {
			f.kind, err = parseKind(r.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", r.Name, err)
		}
		out = append(out, f)
	}
	return out, nil
}

func parseTags(raw json.RawMessage) (map[uint64]field, error) {
	var rows map[string]struct {
		Name string
		Type json.RawMessage
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, err
	}
	out := map[uint64]field{}
	for tag, r := range rows {
		n, err := strconv.ParseUint(tag, 10, 32)
		if err != nil {
			return nil, err
		}
		k, err := parseKind(r.Type)
		if err != nil {
			return nil, fmt.Errorf("tag %s: %w", tag, err)
		}
		out[n] = field{name: r.Name, kind: k}
	}
	return out, nil
}

func parseKind(raw json.RawMessage) (*kind, error) {
	switch raw[0] {
	case '"':
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return nil, err
		}
		if primitives[name] == nil {
			return nil, fmt.Errorf("no primitive %q", name)
		}
		return &kind{primitive: name}, nil
	case '[':
		fields, err := parseFields(raw)
		return &kind{fields: fields}, err
	}
	var row struct {
		Array    string
		Nullable bool
		Of       json.RawMessage
		Struct   json.RawMessage `json:"nullable_struct"`
	}
	if err := json.Unmarshal(raw, &row); err != nil {
		return nil, err
	}
	if row.Struct != nil {
		fields, err := parseFields(row.Struct)
		return &kind{fields: fields, nullable: true}, err
	}
	of, err := parseKind(row.Of)
	return &kind{array: of, compact: row.Array == "compact", isNull: row.Nullable}, err
}
