package record_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/millrace/millrace/core/record"
)

// TestLevels: each level of each codec packs what its reader unpacks; the hardest packs at least as small as the easiest, and smaller for
// text; levels beyond the encoder's are taken for the nearest.
func TestLevels(t *testing.T) {
	var text bytes.Buffer
	for i := range 4000 {
		fmt.Fprintf(&text, "order %d of customer %d: %d pieces\n", i, i*7919%1013, i*31%17)
	}
	for codec, levels := range map[record.Codec][]int{
		record.None: {0, 5}, record.Snappy: {0, 5}, record.Gzip: {-1, 0, 1, 6, 9, 99}, record.LZ4: {0, 1, 9, 17}, record.Zstd: {-131072, 0, 1, 3, 9, 22},
	} {
		sizes := map[int]int{}
		for _, level := range levels {
			var b record.Builder
			b.Reset(record.BuilderOptions{Codec: codec, Level: level})
			b.Append(1, nil, text.Bytes(), nil)
			batch, err := b.Batch()
			if err != nil {
				t.Fatalf("%v at level %d: %v", codec, level, err)
			}
			sizes[level] = len(batch)
			for r, err := range record.Batch(batch).Records(nil) {
				if err != nil || !bytes.Equal(r.Value, text.Bytes()) {
					t.Errorf("%v at level %d does not come back: %v", codec, level, err)
				}
			}
		}
		first, last := levels[0], levels[len(levels)-1]
		switch packs := codec != record.None && codec != record.Snappy; {
		case packs && codec != record.Gzip && sizes[last] >= sizes[first]:
			t.Errorf("%v: %d bytes at level %d, %d at level %d", codec, sizes[first], first, sizes[last], last)
		case codec == record.Gzip && (sizes[9] >= sizes[1] || sizes[99] != sizes[9] || sizes[-1] != sizes[0]):
			t.Errorf("gzip: %v", sizes)
		case !packs && sizes[last] != sizes[first]:
			t.Errorf("%v has no levels: %v", codec, sizes)
		}
	}
}
