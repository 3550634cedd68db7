package streams_test

import (
	"encoding/hex"
	"encoding/json/v2"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/streamstest"
	"github.com/millrace/millrace/streams/window"
)

// The scenarios in testdata are what Apache Kafka Streams 4.4.0 answered on
// small inputs under its topology test driver. Each is run here against the same
// topology in this DSL.

type scenario struct {
	Name     string
	Operator string
	What     string
	Params   struct {
		SizeMs, AdvanceMs, GraceMs, RetentionMs, GapMs int64
		BeforeMs, AfterMs                              int64
		TimeDifferenceMs, WaitMs, HistoryMs            int64
		MaxRecords                                     int
		KafkaDefect                                    bool
		Punctuators                                    []punctuator
		ForwardsRecords                                bool
		Config                                         map[string]string
		Topics                                         map[string]struct{ Dir, Key, Value string }
	}
	Steps  []step
	Expect []expected
	// KeepAll is what comes out if stores forget nothing, where that differs.
	KeepAll []expected `json:"expectIfStoresKeepAll"`
	Stores  map[string][]storeRow
}

type step struct {
	In       string
	Key      *string
	Value    any
	ValueHex *string
	TS       int64
	Headers  map[string]string
	// A step of this kind moves the wall clock.
	AdvanceWallClockMs int64
}

type expected struct {
	Out         string
	Key         *string
	WindowStart *int64
	WindowEnd   *int64
	Value       any
	TS          int64
	AfterStep   int
	Headers     map[string]string
	Fails       string
}

type punctuator struct {
	Name, Time      string
	IntervalMs      int64
	StartMs         *int64
	CancelledInCall int64
}

type storeRow struct {
	Key   string
	Value any
	TS    int64
}

func load(t *testing.T) []*scenario {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.json")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d scenario files found, %v", len(files), err)
	}
	var all []*scenario
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s := new(scenario)
		if err := json.Unmarshal(b, s, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all = append(all, s)
	}
	return all
}

func TestScenariosOfKafkaStreams(t *testing.T) {
	t.Parallel()
	built := maps.Clone(scenarioApps)
	for _, s := range load(t) {
		build := built[s.Name]
		delete(built, s.Name)
		if build == nil {
			t.Errorf("%s: is not run: %s", s.Name, s.What)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			s.run(t, build)
		})
	}
	for name := range built {
		t.Errorf("%s: there is no such scenario", name)
	}
}

// run pipes the steps in, with a crash after each: an application that loses
// anything but uncommitted work in a crash fails too.
func (s *scenario) run(t *testing.T, build func(*streams.App, *scenario)) {
	for _, crash := range []bool{false, true} {
		app := streams.New("scenario")
		if cfg := s.Params.Config; cfg["processing.exception.handler"] != "" || cfg["deserialization.exception.handler"] != "" {
			d := streams.Skip()
			if topic := cfg["errors.dead.letter.queue.topic.name"]; topic != "" {
				d = streams.DeadLetter(topic)
			}
			app = streams.New("scenario", streams.OnError(streams.Always(d)))
		}
		build(app, s)
		if crash && notAfterCrash[s.Name] {
			continue
		}
		d := streamstest.New(t, app, streamstest.StartAt(time.UnixMilli(0)))
		var got []string
		for i, st := range s.Steps {
			var err error
			if st.In == "" {
				err = d.TryAdvance(ms(st.AdvanceWallClockMs))
			} else {
				err = s.send(t, d, st)
			}
			if err != nil {
				got = append(got, fmt.Sprintf("step %d: fails", i))
				break
			}
			for _, line := range s.written(d) {
				got = append(got, fmt.Sprintf("step %d: %s", i, line))
			}
			if crash {
				d.Crash()
			}
		}
		want := s.want()
		if sameTimes[s.Name] {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("crash after each step: %v\n%s\ngot\n  %s\nwant\n  %s\n%s", crash, s.What, strings.Join(got, "\n  "), strings.Join(want, "\n  "), app.Describe())
		}
		s.checkStores(t, d)
	}
}

// notAfterCrash are scenarios of timers that Init sets anew after a crash: a start
// that has passed, and a call that was taken back.
var notAfterCrash = map[string]bool{"punctuate_anchored_wall": true, "punctuate_cancelled_wall": true}

// betterThanKafka are scenarios where Kafka fails, with what comes out here.
var betterThanKafka = map[string][]string{
	// A record without a key waits for nothing: it goes out alone, at once.
	"st_versioned_grace_null_key_fails": {"step 2: out null=s2+~ @20"},
}

// sameTimes are scenarios where calls that are due at the same time have no order
// in Kafka.
var sameTimes = map[string]bool{"punctuate_several_due": true, "punctuate_anchored_wall": true}

func (s *scenario) want() []string {
	list := s.Expect
	if better, ok := betterThanKafka[s.Name]; ok {
		return better
	}
	if s.KeepAll != nil {
		list = s.KeepAll
	}
	if tidy[s.Name] {
		list = withoutIdleDeletions(list)
	}
	var want []string
	for _, e := range list {
		if e.Fails != "" {
			want = append(want, fmt.Sprintf("step %d: fails", e.AfterStep))
			continue
		}
		key := "null"
		if e.Key != nil {
			key = *e.Key
		}
		if e.WindowStart != nil {
			end := *e.WindowEnd
			if s.Params.GapMs > 0 || s.Params.TimeDifferenceMs > 0 {
				end++ // sessions and sliding windows have theirs inclusive
			}
			key = fmt.Sprintf("%s[%d,%d)", key, *e.WindowStart, end)
		}
		want = append(want, fmt.Sprintf("step %d: %s %s=%s @%d%s", e.AfterStep, e.Out, key, show(e.Value), e.TS, headers(e.Headers)))
	}
	return want
}

// show prints a value of a scenario file: null, a string, or a whole number.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case float64:
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprint(v)
}

func headers(h map[string]string) string {
	if len(h) == 0 {
		return ""
	}
	delete(h, "__streams.errors.exception") // the name of an error type, which differs by language
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, " %s=%s", k, h[k])
	}
	return b.String()
}

func (s *scenario) send(t *testing.T, d *streamstest.Driver, st step) error {
	t.Helper()
	topic := s.Params.Topics[st.In]
	if topic.Key != "string" || topic.Dir != "in" {
		t.Fatalf("topic %s has dir %q, key %q", st.In, topic.Dir, topic.Key)
	}
	var key, value []byte
	if st.Key != nil {
		key = []byte(*st.Key)
	}
	switch v := st.Value.(type) {
	case string:
		value = []byte(v)
	case float64:
		b, err := serde.Int64.Append(nil, int64(v))
		if err != nil {
			t.Fatal(err)
		}
		value = b
	}
	if st.ValueHex != nil {
		b, err := hex.DecodeString(*st.ValueHex)
		if err != nil {
			t.Fatal(err)
		}
		value = append([]byte{}, b...)
	}
	var h []streams.Header
	for k, v := range st.Headers {
		h = append(h, streams.Header{Key: k, Value: []byte(v)})
	}
	return d.In[[]byte, []byte](st.In).Raw(time.UnixMilli(st.TS), key, value, h...)
}

// written lists what is new in the output topics, in the order of emission.
func (s *scenario) written(d *streamstest.Driver) []string {
	var lines []string
	for _, r := range d.Written() {
		spec := s.Params.Topics[r.Topic]
		lines = append(lines, fmt.Sprintf("%s %s=%s @%d%s", r.Topic, s.key(spec.Key, r.Key), value(spec.Value, r.Value), r.Time.UnixMilli(), recordHeaders(r.Headers)))
	}
	return lines
}

func (s *scenario) key(spec string, k []byte) string {
	switch {
	case k == nil:
		return "null"
	case spec == "windowed<string>":
		keys := window.Serde(serde.String, ms(s.Params.SizeMs))
		switch {
		case s.Params.TimeDifferenceMs > 0:
			keys = window.Serde(serde.String, ms(s.Params.TimeDifferenceMs+1))
		case s.Params.GapMs > 0:
			keys = window.SessionSerde(serde.String)
		}
		w, err := keys.Decode(k)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s[%d,%d)", w.Key, w.Window.StartMs(), w.Window.EndMs())
	}
	return string(k)
}

func value(spec string, b []byte) string {
	switch {
	case b == nil:
		return "null"
	case spec == "int64":
		n, err := serde.Int64.Decode(b)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(n)
	}
	return string(b)
}

func recordHeaders(h streams.Headers) string {
	m := map[string]string{}
	for _, x := range h {
		if x.Key != "__streams.errors.node" && x.Key != "__streams.errors.phase" { // ours alone
			m[x.Key] = string(x.Value)
		}
	}
	return headers(m)
}

func (s *scenario) checkStores(t *testing.T, d *streamstest.Driver) {
	t.Helper()
	for name, want := range s.Stores {
		got := d.Rows[string, []byte](name)
		if len(got) != len(want) {
			t.Errorf("store %s has %d rows, want %d", name, len(got), len(want))
			continue
		}
		for i, w := range want {
			spec := "string"
			if _, ok := w.Value.(float64); ok {
				spec = "int64"
			}
			if got[i].Key != w.Key || value(spec, got[i].Value) != show(w.Value) || got[i].Time.UnixMilli() != w.TS {
				t.Errorf("store %s row %d is %s=%s @%d, want %s=%s @%d", name, i, got[i].Key, value(spec, got[i].Value), got[i].Time.UnixMilli(), w.Key, show(w.Value), w.TS)
			}
		}
	}
}
