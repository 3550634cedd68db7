package workload

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/history"
)

// TestUniqueJudges: an id that two got, a record that is not where its asker was told, and a run without an id are found.
func TestUniqueJudges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		given []string // at offset 0, 1, …; "+a" is a second one at the offset before
		log   []string
		want  string // "" finds nothing
	}{
		{"good", []string{"a", "b"}, []string{"a", "b", "unacknowledged"}, ""},
		{"twice", []string{"a", "+b"}, []string{"b"}, "offset 0 was given to a and to b"},
		{"moved", []string{"a", "b"}, []string{"b", "a"}, `offset 0 was given to a, and holds "b"`},
		{"lost", []string{"a"}, nil, `offset 0 was given to a, and holds ""`},
		{"nothing", nil, nil, "no id was given"},
	} {
		u := &unique{given: map[place]string{}, at: map[place]string{}}
		at := int64(-1)
		for _, g := range c.given {
			if !strings.HasPrefix(g, "+") {
				at++
			}
			u.give(place{history.Key{Topic: "t"}, at}, strings.TrimPrefix(g, "+"))
		}
		for i, v := range c.log {
			u.record(&kgo.Record{Topic: "t", Offset: int64(i), Value: []byte(v)})
		}
		var out Outcome
		u.judge(&out)
		if found := strings.Join(out.Findings, "\n"); (c.want == "") != (out.Found == 0) || !strings.Contains(found, c.want) {
			t.Errorf("%s: %q, want %q", c.name, found, c.want)
		}
	}
}

// TestCounterJudges: a count that two raised from the same number, one that is short, and one that is not its offset's.
func TestCounterJudges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sent  int64
		chain []string
		odd   []string
		want  string // "" finds nothing
	}{
		{"good", 7, []string{"0 3", "3 7"}, nil, ""},
		{"lost update", 7, []string{"0 3", "0 4", "4 7"}, nil, "goes on from 0, it was 3"},
		{"short", 7, []string{"0 3"}, nil, "the count is 3, 7 records"},
		{"twice", 7, []string{"0 7", "7 9"}, nil, "the count is 9, 7 records"},
		{"apart", 7, []string{"0 7"}, []string{"they did not move together"}, "did not move together"},
		{"rubbish", 7, []string{"0 7", "x"}, nil, "goes on from -1"},
	} {
		_, copying := newCopying(Options{Partitions: 1})
		copying.sent[0].Store(c.sent)
		copying.commits.Store(1)
		w := &counting{copying: copying, chain: map[int32][]step{}, odd: c.odd}
		for _, v := range c.chain {
			w.record(&kgo.Record{Topic: "t1", Value: []byte(v)})
		}
		var out Outcome
		w.judge(&out)
		if found := strings.Join(out.Findings, "\n"); (c.want == "") != (out.Found == 0) || !strings.Contains(found, c.want) {
			t.Errorf("%s: %q, want %q", c.name, found, c.want)
		}
	}
}
