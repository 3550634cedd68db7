package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/millrace/millrace/core/vfs"
)

// What survives a power cut is what was synced: the content by Sync, the name by SyncDir.
func ExampleMem_CrashClone() {
	mem := vfs.NewMem()
	if err := vfs.WriteFile(mem, "synced", []byte("kept"), true); err != nil {
		panic(err)
	}
	f, err := mem.Create("unsynced")
	if err != nil {
		panic(err)
	}
	if err := f.Sync(); err != nil { // the content, not the name
		panic(err)
	}
	lost := 0
	for seed := range uint64(100) {
		disk := mem.CrashClone(seed)
		if b, err := vfs.ReadFile(disk, "synced"); err != nil || string(b) != "kept" {
			panic("a synced file is gone")
		}
		if _, err := disk.Stat("unsynced"); errors.Is(err, fs.ErrNotExist) {
			lost++
		}
	}
	fmt.Println("the unsynced name was lost in some crashes, and kept in some:", lost > 0 && lost < 100)
	// Output: the unsynced name was lost in some crashes, and kept in some: true
}
