package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/txn/history"
)

// TestTextRoundTrip: what is written is read back, event for event.
func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	events := newModel(1).run(500)
	events = append(events, history.Event{Time: events[len(events)-1].Time + 5, Process: 7, Type: history.Fail, Kind: history.Subscribe, Group: "g",
		Keys: []history.Key{{Topic: "with/slash", Partition: 3}}},
		history.Event{Time: events[len(events)-1].Time + 9, Process: 8, Type: history.Info, Kind: history.Poll,
			Steps: []history.Step{{Kind: history.StepPoll, Offset: history.Unknown, At: 4}}, Rebalanced: []history.Key{{Topic: "a"}}, Note: "timed out"})
	var b []byte
	for i := range events {
		b = append(events[i].AppendText(b), '\n')
	}
	back, err := history.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if len(back) != len(events) {
		t.Fatalf("%d events became %d", len(events), len(back))
	}
	for i := range events {
		for s := range events[i].Steps { // only a send has an offset
			if st := &events[i].Steps[s]; st.Kind != history.StepSend {
				st.Offset = history.Unknown
			}
		}
		if a, b := fmt.Sprintf("%+v", events[i]), fmt.Sprintf("%+v", back[i]); a != b {
			t.Fatalf("event %d:\n%s\n%s", i, a, b)
		}
	}
	again := []byte{}
	for i := range back {
		again = append(back[i].AppendText(again), '\n')
	}
	if !bytes.Equal(b, again) {
		t.Error("the text of what was read back differs")
	}
}

func TestNoteIsOneLine(t *testing.T) {
	t.Parallel()
	e := history.Event{Kind: history.Drain, Type: history.Info, Note: "first\nsecond # third"}
	back, err := history.Parse(bytes.NewReader(e.AppendText(nil)))
	if err != nil || len(back) != 1 || back[0].Note != "first second # third" {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestParseErrors: an error names the line and what is wrong with it.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"p0 ok":                              "PROCESS TYPE KIND",
		"0 ok send":                          "PROCESS TYPE KIND",
		"@x p0 ok send":                      `time "x"`,
		"px ok send":                         `process "x"`,
		"p0 done send":                       `no type is called "done"`,
		"p0 ok write":                        `no kind is called "write"`,
		"p0 ok send send a/0":                "send KEY VALUE",
		"p0 ok send send a 1@2":              `"a" is no TOPIC/PARTITION`,
		"p0 ok send send a/-1 1@2":           "is no TOPIC/PARTITION",
		"p0 ok send send a/0 x":              `value "x"`,
		"p0 ok send send a/0 1@x":            `offset "x"`,
		"p0 ok poll poll a/0 1":              "without an offset",
		"p0 ok poll poll a/0 1@0 ,":          "an empty list",
		"p0 ok poll read a/0 1@0":            `no step is called "read"`,
		"p0 ok txn poll | | commit":          "an empty step",
		"p0 ok txn commit now":               "takes no arguments",
		"p0 ok txn offsets":                  "offsets GROUP",
		"p0 ok txn offsets g a/0":            "is no KEY@OFFSET",
		"p0 ok marks a/0 1 2":                "START STABLE HIGH",
		"p0 ok marks a/0 1 2 x":              `watermark "x"`,
		"p0 ok drain a/0":                    "takes no arguments",
		"p0 ok assign a/0 | assign a/1":      "has no steps",
		"p0 ok poll poll ~x":                 "time of a step",
		"p0 ok poll poll | rebalanced a":     "is no TOPIC/PARTITION",
		"p0 ok send send a/9999999999 1@2":   "is no TOPIC/PARTITION",
		"p0 ok committed g a/0@1 b/0@second": `offset "second"`,
	} {
		_, err := history.Parse(strings.NewReader("p9 ok drain\n" + line + "\n"))
		if !errors.Is(err, history.ErrText) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// TestMalformed: events that are no history get an error and no verdict.
func TestMalformed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"two operations at once":  "p0 invoke txn\np0 invoke poll",
		"an end of another kind":  "p0 invoke txn\np0 ok poll",
		"time goes back":          "@5 p0 ok drain\n@4 p0 ok drain",
		"a value that is no name": "p0 ok send send a/0 1@0\np1 ok send send a/0 1@1",
	} {
		events, err := history.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := history.Check(events); !errors.Is(err, history.ErrMalformed) || r != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSameVerdict: a history has one report.
func TestSameVerdict(t *testing.T) {
	t.Parallel()
	events := newModel(3).run(2000)
	a, first := judge(t, events)
	b, second := judge(t, events)
	if first != second || !reflect.DeepEqual(a, b) {
		t.Errorf("two verdicts on one history:\n%s\n%s", first, second)
	}
}

func FuzzCheck(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		events, err := history.Parse(bytes.NewReader(raw))
		if err != nil {
			return
		}
		r, err := history.Check(events)
		if err != nil {
			return
		}
		if err := r.WriteText(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkCheck shows the cost per event, which hardly grows with the length.
func BenchmarkCheck(b *testing.B) {
	for _, steps := range []int{10_000, 40_000} {
		events := newModel(2).run(steps)
		b.Run(fmt.Sprintf("events=%d", len(events)), func(b *testing.B) {
			for b.Loop() {
				if _, err := history.Check(events); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
		})
	}
}
