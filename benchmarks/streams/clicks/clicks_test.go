package clicks

import (
	"testing"
	"time"

	"github.com/millrace/millrace/streams/streamstest"
)

// TestEvents: the first events, and the sum over many, are those that the other implementations make too.
func TestEvents(t *testing.T) {
	t.Parallel()
	e := NewEvents()
	first := e.Next()
	if got := string(first.Key) + " " + string(first.Value); got != `user-3649 {"user":"user-3649","url":"/shop/item/273","ms":1700000000000,"referrer":"https://example.org/search?q=2","cents":2665}` {
		t.Errorf("the first event is %s", got)
	}
	users := map[int]bool{first.User: true}
	bytes := len(first.Key) + len(first.Value)
	for range 99_999 {
		v := e.Next()
		users[v.User] = true
		bytes += len(v.Value)
	}
	if len(users) < Users*99/100 || bytes/100_000 < 105 || bytes/100_000 > 135 {
		t.Errorf("%d users, %d bytes an event", len(users), bytes/100_000)
	}
}

// TestJobs: each job gives under virtual time what its check asks for, and a check sees a record that is missing, twice
// there or another one.
func TestJobs(t *testing.T) {
	t.Parallel()
	const n = 3000
	for _, c := range []struct {
		job    string
		cached int
	}{{Map, 0}, {Count, 0}, {Count, 100}, {Minute, 0}} {
		seen := 0
		app, err := Job(c.job, "test", "in", "out", Options{Cached: c.cached, Seen: func() { seen++ }})
		if err != nil {
			t.Fatal(err)
		}
		d := streamstest.New(t, app, streamstest.Partitions(2))
		in := d.In[string, string]("in")
		for e, i := NewEvents(), 0; i < n; i++ {
			v := e.Next()
			in.At(time.UnixMilli(v.TimeMs), string(v.Key), string(v.Value))
		}
		if seen != n {
			t.Errorf("%s has seen %d records of %d", c.job, seen, n)
		}
		written := d.Written()
		check := func(records []streamstest.Raw) error {
			k, err := NewCheck(c.job, n, c.cached == 0, Long)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if r.Topic != "out" {
					continue
				}
				if err := k.Take(r.Key, r.Value); err != nil {
					return err
				}
			}
			return k.Done()
		}
		if err := check(written); err != nil {
			t.Errorf("%s: %v", c.job, err)
		}
		last := len(written) - 1
		for what, records := range map[string][]streamstest.Raw{
			"a missing record": written[:last],
			"a double record":  append(written[:last+1:last+1], written[last]),
		} {
			if check(records) == nil {
				t.Errorf("%s: nobody sees %s", c.job, what)
			}
		}
	}
}

// TestJobsWithoutResults: the two others build and run.
func TestJobsWithoutResults(t *testing.T) {
	t.Parallel()
	for job, rows := range map[string]int{Latest: 1, Relay: 0} {
		app, err := Job(job, "test", "in", "out", Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := streamstest.New(t, app)
		d.In[string, string]("in").Send("a", "1")
		d.In[string, string]("in").Send("a", "2")
		if rows > 0 {
			if got := d.Rows[string, string]("latest"); len(got) != rows || got[0].Value != "2" {
				t.Errorf("%s keeps %v", job, got)
			}
		} else if got := d.Out[string, string]("out").Records(); len(got) != 2 || got[1].Value != "2" {
			t.Errorf("%s gives %v", job, got)
		}
	}
	if _, err := Job("other", "id", "in", "out", Options{}); err == nil {
		t.Error("a job of any name is built")
	}
}
