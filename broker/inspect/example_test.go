package inspect_test

import (
	"fmt"

	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// The folder of a partition with one batch of two records, of which a bit is flipped.
func Example() {
	fsys := vfs.NewMem()
	var b record.Builder
	b.Reset(record.BuilderOptions{})
	b.Append(1700000000000, []byte("ann"), []byte("tea"), nil)
	b.Append(1700000000001, []byte("bob"), []byte("coffee"), nil)
	batch, err := b.Batch()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := fsys.MkdirAll("/orders-0"); err != nil {
		fmt.Println(err)
		return
	}
	for name, data := range map[string][]byte{
		"00000000000000000000.log": batch, "00000000000000000000.index": nil, "00000000000000000000.timeindex": nil,
		"leader-epoch-checkpoint": []byte("0\n1\n0 0\n"), "partition.metadata": []byte("version: 0\ntopic_id: v0EDIuKFQgiLyNmOEh8duQ"),
	} {
		if err := vfs.WriteFile(fsys, "/orders-0/"+name, data, true); err != nil {
			fmt.Println(err)
			return
		}
	}
	d, err := inspect.Open(fsys, "/orders-0")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = d.Partitions[0].Walk(inspect.WalkOptions{Records: true, Suffixes: []string{".log"}}, func(i inspect.Item) error {
		if r, ok := i.(*inspect.RecordItem); ok {
			fmt.Println(r.Offset, r.Key, r.Value)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}

	batch[70] ^= 1
	if err := vfs.WriteFile(fsys, "/orders-0/00000000000000000000.log", batch, true); err != nil {
		fmt.Println(err)
		return
	}
	if err := d.Verify(inspect.VerifyOptions{}, func(f inspect.Finding) { fmt.Println(f.Severity, f.Partition, f.File, f.Position) }); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0 "ann" "tea"
	// 1 "bob" "coffee"
	// torn tail orders-0 00000000000000000000.log 0
}
