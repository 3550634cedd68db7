package streams_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/streamstest"
)

// TestFamiliesAtEveryCrash: each family of operators, with a crash at each step of a
// short run under virtual time, with transactions of one record and of several, which
// are merged by time when they are processed again as when they were first.
func TestFamiliesAtEveryCrash(t *testing.T) {
	t.Parallel()
	n := 8
	if seedtest.Soak() {
		n = 60
	}
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			seed := seedtest.New(t)
			for _, manual := range []bool{false, true} {
				opts := []streamstest.Option{streamstest.Partitions(2)}
				if manual {
					opts = append(opts, streamstest.ManualCommit())
				}
				streamstest.EveryCrash(t, f.app, func(d *streamstest.Driver) {
					rnd := rand.New(rand.NewPCG(seed, 1))
					main, closing := f.inputs(rnd, n)
					for i, g := range append(main, closing[:4]...) {
						if err := d.In[string, string](g.topic).Raw(time.UnixMilli(g.ts), []byte(g.key), g.value); err != nil {
							t.Fatal(err)
						}
						if manual && i%5 == 4 {
							d.Commit()
						}
					}
				}, opts...)
			}
		})
	}
}
