package nexmark

import (
	"encoding/binary"
	"encoding/json/v2"
	"fmt"
	"hash/maphash"
)

// Check compares what a query has written with the oracle's answer. Take gets each record, those of one key in order; a
// null value takes a row back. Done says what is wrong in the end.
type Check struct {
	query     string
	want, got answer
	all       struct{ want, got struct{ n, sum uint64 } } // of the queries whose every record counts
	seed      maphash.Seed
}

// NewCheck checks a query over the first n events.
func (c Config) NewCheck(query string, n int64, partitions int32) *Check {
	k := &Check{query: query, got: answer{}, seed: maphash.MakeSeed()}
	f := c.factsOf(n, partitions)
	switch query {
	case "q0", "q1", "q2":
		for _, b := range f.bids {
			if v, ok := stateless(query, *b); ok {
				k.all.want.n++
				k.all.want.sum += maphash.String(k.seed, canonical(v))
			}
		}
	default:
		k.want = f.answer(query)
	}
	return k
}

// Take notes one result.
func (k *Check) Take(key, value []byte) error {
	if len(key) != 8 && (k.query != "q8" || len(key) != 16) {
		return fmt.Errorf("a key of %d bytes", len(key))
	}
	id := fmt.Sprint(int64(binary.BigEndian.Uint64(key)))
	if k.query == "q8" {
		id = windowKey(int64(binary.BigEndian.Uint64(key)), int64(binary.BigEndian.Uint64(key[8:])))
	}
	if value == nil {
		delete(k.got, id)
		return nil
	}
	v, err := k.decode(value)
	if err != nil {
		return fmt.Errorf("the result of key %s: %w", id, err)
	}
	if k.want == nil {
		k.all.got.n++
		k.all.got.sum += maphash.String(k.seed, v)
		return nil
	}
	k.got[id] = v
	return nil
}

// decode reads a result of whoever has written it, and gives the form that can be compared.
func (k *Check) decode(value []byte) (string, error) {
	switch k.query {
	case "q0", "q1":
		return as[Bid](value)
	case "q2":
		return as[Price](value)
	case "q3":
		return as[Offer](value)
	case "q5":
		return as[Hot](value)
	case "q7":
		return as[High](value)
	case "q8":
		return as[Seller](value)
	}
	if len(value) != 8 {
		return "", fmt.Errorf("a number of %d bytes", len(value))
	}
	return canonical(int64(binary.BigEndian.Uint64(value))), nil
}

func as[V any](value []byte) (string, error) {
	var v V
	err := json.Unmarshal(value, &v, json.RejectUnknownMembers(true))
	return canonical(v), err
}

// Done compares.
func (k *Check) Done() error {
	if k.all.want != k.all.got {
		return fmt.Errorf("%s: %d results came out, %d should have, or they are other ones", k.query, k.all.got.n, k.all.want.n)
	}
	for key, want := range k.want {
		if got, ok := k.got[key]; got != want {
			return fmt.Errorf("%s: key %s has %.200q (there: %v), the oracle says %.200q", k.query, key, got, ok, want)
		}
	}
	if len(k.got) != len(k.want) {
		return fmt.Errorf("%s: %d keys came out, %d should have", k.query, len(k.got), len(k.want))
	}
	return nil
}
