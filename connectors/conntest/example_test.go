package conntest_test

import (
	"testing"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/connectors/conntest"
)

// The test function of a connector. Open returns an empty store, which knows how
// to make one more client and how to read itself back.
func ExampleRunSink() {
	var _ = func(t *testing.T) { // func TestConformance(t *testing.T)
		conntest.RunSink(t, conntest.Kit{
			Cluster: brokertest.Start(t),
			Open: func(tb testing.TB, name string) conntest.Store {
				return newStore(tb, name)
			},
			Poison: []byte(`{"id":null,"key":"k","n":1}`), // the id is NOT NULL
		})
	}
}

func newStore(tb testing.TB, name string) conntest.Store { return memoryKit(sound).Open(tb, name) }
