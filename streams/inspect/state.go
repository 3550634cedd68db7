package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// Row is one row of a store as its changelog has it, as text where its types are
// simple: strings, numbers, JSON. What is not is in hex, with 0x in front.
type Row struct {
	Partition int32      `json:"partition"`
	Window    *time.Time `json:"windowStart,omitempty"` // of a windowed store
	Key       string     `json:"key"`
	Value     string     `json:"value"`
	Time      *time.Time `json:"time,omitempty"` // of the row, where it has one
}

// Filter selects rows by their keys' text; the zero value selects all.
type Filter struct {
	Key    string // exactly
	Prefix string
	Limit  int // 0: no limit
}

// State reads what a store of an application holds, as committed: its whole
// changelog is read and folded. Only the rows that pass the filter are kept in
// memory. They come in order of partition and key.
func (i *Inspector) State(ctx context.Context, id, store string, filter Filter) ([]Row, error) {
	d, err := i.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range d.stores() {
		names = append(names, n.Store)
		if n.Store == store {
			return i.fold(ctx, n, filter)
		}
	}
	return nil, fmt.Errorf("application %s has no store %q; it has %s", id, store, strings.Join(names, ", "))
}

type rowKey struct {
	partition int32
	key       string
}

func (i *Inspector) fold(ctx context.Context, n topology.PictureNode, filter Filter) ([]Row, error) {
	if n.Changelog == "" {
		return nil, fmt.Errorf("store %s has no changelog: only its process knows what it holds", n.Store)
	}
	f := formOf(n)
	rows := map[rowKey][]byte{}
	err := i.read(ctx, n.Changelog, func(r *session.Record) {
		if r.Key == nil {
			return
		}
		_, key := f.key(r.Key)
		if filter.Key != "" && key != filter.Key || !strings.HasPrefix(key, filter.Prefix) {
			return
		}
		at := rowKey{r.Partition, string(r.Key)}
		if r.Value == nil {
			delete(rows, at)
		} else {
			rows[at] = bytes.Clone(r.Value)
		}
	})
	if err != nil {
		return nil, err
	}
	keys := make([]rowKey, 0, len(rows))
	for k := range rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b rowKey) int {
		if a.partition != b.partition {
			return int(a.partition - b.partition)
		}
		return strings.Compare(a.key, b.key)
	})
	var out []Row
	for _, k := range keys {
		if filter.Limit > 0 && len(out) == filter.Limit {
			break
		}
		out = append(out, f.row(k, rows[k]))
	}
	return out, nil
}

// form is how the rows of a store are read, found in its shape: "rows (string,
// int64)", with " in windows of …" behind it for windowed ones.
type form struct {
	keyType, valueType string
	windowed           bool // keys begin with the window's start
	timed              bool // values begin with a timestamp
}

func formOf(n topology.PictureNode) form {
	types, ok := strings.CutPrefix(n.Shape, "rows (")
	if !ok {
		return form{} // of a kind that is not read as typed
	}
	end := strings.LastIndex(types, ")")
	if end < 0 {
		return form{}
	}
	key, value, _ := strings.Cut(types[:end], ", ")
	return form{key, value, strings.HasPrefix(types[end+1:], " in windows"), n.Logged}
}

// key takes a row's key apart.
func (f form) key(raw []byte) (start *time.Time, key string) {
	if f.windowed && len(raw) >= 8 {
		start, raw = millis(raw), raw[8:]
	}
	return start, text(f.keyType, raw)
}

func (f form) row(k rowKey, value []byte) Row {
	r := Row{Partition: k.partition}
	r.Window, r.Key = f.key([]byte(k.key))
	if f.timed && len(value) >= 8 {
		r.Time, value = millis(value), value[8:]
	}
	r.Value = text(f.valueType, value)
	return r
}

func millis(b []byte) *time.Time {
	t := time.UnixMilli(int64(binary.BigEndian.Uint64(b))).UTC()
	return &t
}

// text is bytes as a value of a type, by the encodings of package serde; in hex
// where they are no such value.
func text(typ string, b []byte) string {
	switch {
	case typ == "string" && utf8.Valid(b):
		return string(b)
	case (typ == "int64" || typ == "int" || typ == "time.Duration") && len(b) == 8:
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10)
	case typ == "int32" && len(b) == 4:
		return strconv.FormatInt(int64(int32(binary.BigEndian.Uint32(b))), 10)
	case typ == "float64" && len(b) == 8:
		return strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64)
	case typ == "bool" && len(b) == 1:
		return strconv.FormatBool(b[0] != 0)
	case typ != "" && typ != "[]uint8" && json.Valid(b):
		return string(b)
	}
	return "0x" + hex.EncodeToString(b)
}
