package partition

import (
	"slices"
	"syscall"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

// TestNothingOvertakesARefusedBatch: of several batches that a new producer has under way the first is refused for a reason that
// passes. Those behind it must wait for it to come again; taken at once they would shut it out for good. The simulator found it with
// a coordinator that was not there for the first of three pipelined requests.
func TestNothingOvertakesARefusedBatch(t *testing.T) {
	t.Parallel()
	faults := vfs.WithFaults(vfs.NewMem())
	r := newRig(t, faults, commitlog.Config{})
	p := r.open()
	for _, c := range []struct {
		name   string
		sender *sender
		refuse func(batch []byte) // the first batch, which does not get into the log
	}{
		{"by the coordinator", &sender{id: 1, txn: true}, func(b []byte) { r.guardFor(b) }},
		{"by the disk", &sender{id: 2}, func(b []byte) {
			heal := faults.Add(vfs.Rule{Kinds: vfs.OpWrite, Path: "*.log", Err: syscall.ENOSPC})
			defer heal()
			if _, err := p.Append(slices.Clone(b), AppendOptions{RequestVersion: 12}); err == nil {
				t.Error("a full disk takes a batch")
			}
		}},
	} {
		first, second := c.sender.batch(t, 1, "a", "b"), c.sender.batch(t, 1, "c")
		c.refuse(first)
		end := p.Marks().LogEnd
		_, err := p.Append(slices.Clone(second), AppendOptions{RequestVersion: 12, Guard: r.guardFor(second)})
		if code(err) != producer.CodeOutOfOrderSequence || p.Marks().LogEnd != end {
			t.Fatalf("%s: the second batch: %v", c.name, err)
		}
		for i, b := range [][]byte{first, second} {
			if a := r.append(b); a.BaseOffset != end+int64(2*i) {
				t.Fatalf("%s: batch %d went to %+v", c.name, i, a)
			}
		}
	}
	r.close()
}
