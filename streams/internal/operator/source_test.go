package operator

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/state"
)

// What becomes of a time before 1970 that comes from the contents of a record, also
// when the record's own is one.
func TestSourceJudgesTimesFromContents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule InvalidTime
		at   int64 // of the second record, -1 if it fails
	}{{InvalidAsEver, -1001}, {InvalidSkips, -1001}, {InvalidIsPartitions, 4000}, {InvalidFails, -1}} {
		text := NewCodec(serde.String)
		src := &Source[string, string]{Node: "in", Topic: "in", Key: &text, Value: &text, Invalid: c.rule, Out: new(Outlet[string, string]),
			Time: func() TimeFunc[string, string] {
				return func(r *Record[string, string], _ int64) int64 { return r.TimeMs - 1000 }
			}}
		tk, err := NewTask(task.Env{
			Emit:  func(*task.Out) error { return nil },
			Store: func(string) (state.Store, error) { return nil, errors.New("none") },
		}, []Root{{Topic: "in", Build: src.Build}})
		if err != nil {
			t.Fatal(err)
		}
		for i, own := range []int64{5000, -1} {
			r := &task.Record{Topic: "in", Offset: int64(i), TimeMs: own, Key: []byte("k"), Value: []byte("v")}
			at := tk.TimeMs(r)
			if r.TimeMs != own {
				t.Errorf("the record's own time became %d", r.TimeMs)
			}
			r.TimeMs = at
			err := tk.Process(r)
			switch {
			case i == 0 && (at != 4000 || err != nil):
				t.Errorf("rule %d: the first record is at %d, %v", c.rule, at, err)
			case i == 1 && c.at == -1 && !errors.Is(err, ErrTimestamp):
				t.Errorf("rule %d: the second record is at %d, %v", c.rule, at, err)
			case i == 1 && c.at != -1 && (at != c.at || err != nil):
				t.Errorf("rule %d: the second record is at %d, %v; want %d", c.rule, at, err, c.at)
			}
		}
	}
}
