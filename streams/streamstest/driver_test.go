package streamstest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

func counts() *streams.App {
	app := streams.New("c")
	app.Stream[string, string]("in").GroupBy(strings.ToLower, streams.As("g")).Count(streams.As("n")).To("out")
	return app
}

func show(rs []streams.Record[string, int64]) string {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "%s=%d ", r.Key, r.Value)
	}
	return b.String()
}

// TestWhatIsNotCommittedIsSeenByNobody follows one record through two hops.
func TestWhatIsNotCommittedIsSeenByNobody(t *testing.T) {
	d := streamstest.New(t, counts(), streamstest.ManualCommit())
	in, out := d.In[string, string]("in"), d.Out[string, int64]("out")
	in.Send("", "A")
	d.Process()
	if len(d.Topic("c-g-repartition", 0)) != 0 {
		t.Fatal("an uncommitted repartition record is visible")
	}
	d.Commit()
	if len(d.Topic("c-g-repartition", 0)) != 1 || len(d.Rows[string, int64]("n")) != 0 {
		t.Fatal("one commit is one hop")
	}
	d.Process()
	if got := d.Rows[string, int64]("n"); len(got) != 1 || len(out.Records()) != 0 {
		t.Fatalf("rows %v, out %v", got, out.Records())
	}
	d.Crash()
	if got := d.Rows[string, int64]("n"); len(got) != 0 {
		t.Fatalf("a crash left uncommitted rows: %v", got)
	}
	d.Settle()
	if got := show(out.Records()); got != "a=1 " {
		t.Fatalf("out is %s", got)
	}
	if got := len(d.Topic("c-n-changelog", 0)); got != 1 {
		t.Fatalf("%d changelog records", got)
	}
}

func TestNextWrittenRepeat(t *testing.T) {
	start := time.Date(2001, 7, 14, 0, 0, 0, 0, time.UTC)
	d := streamstest.New(t, counts(), streamstest.Partitions(4), streamstest.StartAt(start))
	in, out := d.In[string, string]("in"), d.Out[string, int64]("out")
	in.Send("", "A")
	d.Advance(time.Minute)
	in.Repeat()
	if got := show(out.Next()); got != "a=1 a=2 " {
		t.Errorf("Next is %s", got)
	}
	in.Send("", "B")
	got := out.Next()
	if show(got) != "b=1 " || !got[0].Time.Equal(start.Add(time.Minute)) {
		t.Errorf("Next is %v", got)
	}
	if out.Next() != nil || len(out.Records()) != 3 {
		t.Error("Next gives records twice, or Records takes them")
	}
	w := d.Written()
	if len(w) != 3 || slices.ContainsFunc(w, func(r streamstest.Raw) bool { return r.Topic != "out" }) || d.Written() != nil {
		t.Errorf("written: %v", w)
	}
}

func TestUnkeyedRecordsGoRound(t *testing.T) {
	app := streams.New("c")
	app.Stream[string, string]("in").To("out")
	d := streamstest.New(t, app, streamstest.Partitions(3))
	for range 6 {
		d.In[string, string]("in").NoKey(d.Now(), "v")
	}
	for p := range int32(3) {
		if n := len(d.Topic("in", p)); n != 2 {
			t.Errorf("partition %d has %d records", p, n)
		}
	}
}

// TestTableComesBackFromItsTopic: a table has no changelog but its topic,
// records that were skipped included.
func TestTableComesBackFromItsTopic(t *testing.T) {
	app := streams.New("c", streams.OnError(streams.Always(streams.Skip())))
	app.Table[string, int64]("t").ToStream().To("out")
	d := streamstest.New(t, app)
	in := d.In[string, int64]("t")
	in.At(time.UnixMilli(5), "a", 1)
	in.At(time.UnixMilli(6), "b", 2)
	in.Delete(time.UnixMilli(7), "b")
	if err := in.Raw(time.UnixMilli(8), []byte("a"), []byte("bad")); err != nil {
		t.Fatal(err)
	}
	in.NoKey(time.UnixMilli(9), 3)
	for range 2 {
		rows := d.Rows[string, int64]("t")
		if show(rows) != "a=1 " || rows[0].Time.UnixMilli() != 5 {
			t.Errorf("rows are %v", rows)
		}
		d.Crash()
	}
	if d.Dropped("t", "skipped") != 1 || d.Dropped("t", "null key") != 1 {
		t.Error("counters did not survive the crash")
	}
}

func TestDriverFailsTheTest(t *testing.T) {
	var f fatals
	bad := streamstest.New(&f, streams.New("empty"))
	if bad == nil || !strings.Contains(string(f), "the topology is empty") {
		t.Errorf("an empty application: %q", f)
	}
	defer func() {
		if v := recover(); v == nil {
			t.Error("without a test, failures panic")
		}
	}()
	streamstest.New(nil, streams.New("empty"))
}

// fatals keeps what a driver would fail a test with.
type fatals string

func (f *fatals) Helper()                           {}
func (f *fatals) Fatalf(format string, args ...any) { *f += fatals(fmt.Sprintf(format, args...)) }
