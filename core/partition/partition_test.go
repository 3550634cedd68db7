package partition_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/millrace/millrace/core/partition"
)

// TestVectors holds the hash against what Kafka's Java client 4.4.0 computed.
func TestVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/murmur2.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Keys []struct {
			Key        string
			Murmur2    int32
			Partitions map[string]int32
		}
	}
	if err := json.Unmarshal(raw, &vectors); err != nil || len(vectors.Keys) < 10 {
		t.Fatalf("%d keys, %v", len(vectors.Keys), err)
	}
	for _, v := range vectors.Keys {
		key, err := hex.DecodeString(v.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got := int32(partition.Murmur2(key)); got != v.Murmur2 {
			t.Errorf("%q: hash %d, want %d", key, got, v.Murmur2)
		}
		for n, want := range v.Partitions {
			count, err := strconv.ParseInt(n, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			if got := partition.ForKey(key, int32(count)); got != want {
				t.Errorf("%q among %d: %d, want %d", key, count, got, want)
			}
		}
	}
}

func TestForKeyWithoutPartitions(t *testing.T) {
	t.Parallel()
	for _, n := range []int32{0, -1} {
		if got := partition.ForKey([]byte("k"), n); got != 0 {
			t.Errorf("among %d: %d", n, got)
		}
	}
}

func TestDoesNotAllocate(t *testing.T) {
	key := []byte("a key of some length")
	if n := testing.AllocsPerRun(100, func() { partition.ForKey(key, 12) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleForKey() {
	fmt.Println(partition.ForKey([]byte("abc"), 12))
	// Output: 3
}

func BenchmarkMurmur2(b *testing.B) {
	key := []byte("customer-000001")
	for b.Loop() {
		partition.Murmur2(key)
	}
}
