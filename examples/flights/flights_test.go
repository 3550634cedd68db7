package main

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/streamstest"
)

// TestJobAgainstPlainLoop runs the demo's job under the test driver, over the real data, on three partitions and with
// crashes on the way, and compares its last word on every state-day with the plain loop's.
func TestJobAgainstPlainLoop(t *testing.T) {
	t.Parallel()
	answer, _, _, err := plainLoop()
	if err != nil {
		t.Fatal(err)
	}
	names := topicsOf("")
	d := streamstest.New(t, job("job", names), streamstest.Partitions(3), streamstest.ManualCommit())
	airports, flights := d.In[string, Airport](names.airports), d.In[string, Flight](names.flights)
	results := d.Out[string, row](names.results)
	if _, err := eachAirport(func(a Airport) { airports.At(time.UnixMilli(0), a.IATA, a) }); err != nil {
		t.Fatal(err)
	}
	d.Settle()
	all, err := readFlights()
	if err != nil {
		t.Fatal(err)
	}
	got := map[StateDay]row{}
	take := func() {
		for _, r := range results.Records() {
			got[StateDay{r.Value.State, r.Value.Day}] = r.Value
		}
	}
	for i, f := range all {
		at, err := time.Parse(dateLayout, f.Date)
		if err != nil {
			t.Fatal(err)
		}
		flights.At(at, f.Origin, f)
		switch {
		case i%3000 == 2999:
			d.Process()
			d.Crash() // what was processed since the last commit is undone and done again
		case i%1000 == 999:
			d.Settle()
		}
	}
	d.Settle()
	take()
	if len(got) != len(answer) {
		t.Fatalf("%d state-days, want %d", len(got), len(answer))
	}
	for k, want := range answer {
		if r := got[k]; r.Flights != want.Flights || r.Minutes != want.Minutes || r.Average != average(want) {
			t.Fatalf("%v: %+v, want %+v", k, r, want)
		}
	}
}

// TestConcludeSeesEveryDifference: the comparison at the end must fail on a lost, a doubled, a changed and a made-up row.
func TestConcludeSeesEveryDifference(t *testing.T) {
	t.Parallel()
	answer := map[StateDay]Delays{{"TX", "2001-01-01"}: {2, 30}, {"CA", "2001-01-01"}: {1, -5}}
	for name, c := range map[string]struct{ change, says string }{
		"equal":    {"SELECT 1", ""},
		"lost":     {"DELETE FROM state_days WHERE state = 'CA'", "1 of 2 rows differ"},
		"doubled":  {"UPDATE state_days SET flights = 4, minutes = 60 WHERE state = 'TX'", "1 of 2 rows differ"},
		"minutes":  {"UPDATE state_days SET minutes = 31 WHERE state = 'TX'", "1 of 2 rows differ"},
		"average":  {"UPDATE state_days SET average = 15.5 WHERE state = 'TX'", "1 of 2 rows differ"},
		"made up":  {"INSERT INTO state_days VALUES ('NY', '2001-01-01', 1, 1, 1)", "1 of 2 rows differ"},
		"rejected": {"INSERT INTO _millrace_rejects VALUES (1)", "1 of 2 rows differ"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options{dir: t.TempDir()}
			fill(t, o, answer, c.change)
			err := conclude(context.Background(), o, answer, 3, 0)
			if (err == nil) != (c.says == "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("%v, want %q", err, c.says)
			}
		})
	}
}

// fill writes the answer into a table of the sink's shape and then makes one change to it.
func fill(t *testing.T, o options, answer map[StateDay]Delays, change string) {
	t.Helper()
	db, err := sql.Open("sqlite", databasePath(o.dir))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(q string, args ...any) {
		if _, err := db.Exec(q, args...); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	exec("CREATE TABLE state_days (state TEXT, day TEXT, flights INTEGER, minutes INTEGER, average REAL, PRIMARY KEY (state, day))")
	exec("CREATE TABLE _millrace_rejects (n INTEGER)")
	for k, d := range answer {
		exec("INSERT INTO state_days VALUES (?, ?, ?, ?, ?)", k.State, k.Day, d.Flights, d.Minutes, average(d))
	}
	exec(change)
}

func TestKillMomentsLieInsideTheWork(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		at := killMoments(options{kills: 5, seed: seed}, 40_000)
		if len(at) != 5 || !slices.IsSorted(at) || at[0] < 2000 || at[4] >= 30_000 {
			t.Fatalf("seed %d: %v", seed, at)
		}
		if !slices.Equal(at, killMoments(options{kills: 5, seed: seed}, 40_000)) {
			t.Fatalf("seed %d gives different moments", seed)
		}
	}
}

func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--kills", "-1"}, {"--kills", "21"}, {"--kills", "x"}, {"extra"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	o, err := parse([]string{"--brokers", "a:1,b:2", "--seed", "7"})
	if err != nil || o.prefix == "" || len(o.brokers) != 2 || o.seed != 7 || o.kills != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}
