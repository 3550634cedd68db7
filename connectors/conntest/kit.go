package conntest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors"
)

// Row is one row of a store as the kit reads it back.
type Row struct {
	ID  string // field "id" of the record's value
	Key string // field "key" of the record's value
}

// Ref names a record.
type Ref struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Store is one store under test, empty when the kit gets it.
type Store interface {
	// New returns one more client of the store, as another process would be.
	New() (connectors.TxSink, error)
	// Rows returns what is stored as data, in any order.
	Rows(ctx context.Context) ([]Row, error)
	// Rejected returns what is stored as rejects, in any order.
	Rejected(ctx context.Context) ([]Ref, error)
}

// Kit describes a sink to the conformance kit.
type Kit struct {
	// Cluster is any cluster of the Kafka protocol. Without one, the cases
	// that need it are left out.
	Cluster connectors.Cluster
	// Open returns an empty store. It is called once per case; name is fit for
	// a file or table name. What it opens it closes through tb.Cleanup.
	Open func(tb testing.TB, name string) Store
	// Upsert: the store keeps one row per key, the last one written.
	Upsert bool
	// Poison is a value that the sink rejects with a RejectError though it is
	// valid JSON; nil when there is none.
	Poison []byte
	// Seed of all random choices; 0 takes one and prints it.
	Seed uint64
	// Only runs the cases whose names contain it.
	Only string
}

// limit bounds one case.
const limit = 60 * time.Second

// testCase is one thing that may happen to a sink.
type testCase struct {
	name    string
	cluster bool // needs one
	run     func(e *env) error
}

// cases lists everything, in a fixed order.
func (k Kit) cases() []testCase {
	var all []testCase
	all = append(all, contractCases()...)
	all = append(all, crashCases()...)
	all = append(all, zombieCases()...)
	all = append(all, runCases()...)
	var out []testCase
	for _, c := range all {
		if c.cluster && k.Cluster == nil || !strings.Contains(c.name, k.Only) {
			continue
		}
		out = append(out, c)
	}
	return out
}

// RunSink runs every case as a subtest.
func RunSink(t *testing.T, k Kit) {
	if k.Open == nil {
		t.Fatal("conntest: Kit.Open is required")
	}
	if k.Seed == 0 {
		k.Seed = rand.Uint64()
	}
	t.Logf("conntest: seed %d", k.Seed)
	for _, c := range k.cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := k.run(t, c); err != nil {
				t.Errorf("seed %d: %v", k.Seed, err)
			}
		})
	}
}

// Finding is the result of one case; Err is nil when it passed.
type Finding struct {
	Case string
	Err  error
}

// Verify runs every case one after the other and returns what it found, for
// callers that want to look at the findings. tb is used for clean-up only.
func Verify(tb testing.TB, k Kit) []Finding {
	var out []Finding
	for _, c := range k.cases() {
		out = append(out, Finding{Case: c.name, Err: k.run(tb, c)})
	}
	return out
}

// run runs one case on a store of its own.
func (k Kit) run(tb testing.TB, c testCase) (err error) {
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(c.name)) // never fails, see package hash
	e := &env{
		tb: tb, kit: k, ctx: ctx, name: safe(c.name),
		rng: rand.New(rand.NewPCG(k.Seed, sum.Sum64())),
	}
	e.store = k.Open(tb, e.name)
	defer e.close()
	if err := c.run(e); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// safe makes a name of letters, digits and dashes.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}
