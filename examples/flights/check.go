package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// conclude compares the table with the answer of the plain loop, row by row, and prints the result.
func conclude(ctx context.Context, o options, answer map[StateDay]Delays, flights, kills int) error {
	got, rejects, err := readTable(ctx, databasePath(o.dir))
	if err != nil {
		return err
	}
	lost, doubled := 0, 0
	var wrong []string
	for k, want := range answer {
		have := got[k]
		if diff := int(want.Flights - have.Flights); diff > 0 {
			lost += diff
		} else {
			doubled -= diff
		}
		if have.Delays != want || (have.Flights > 0 && have.average != average(want)) {
			wrong = append(wrong, fmt.Sprintf("%s %s: %d flights, %d minutes; want %d and %d", k.State, k.Day, have.Flights, have.Minutes, want.Flights, want.Minutes))
		}
	}
	for k, have := range got {
		if _, known := answer[k]; !known {
			doubled += int(have.Flights)
			wrong = append(wrong, fmt.Sprintf("%s %s: %d flights in the table, none in the files", k.State, k.Day, have.Flights))
		}
	}
	if rejects > 0 {
		wrong = append(wrong, fmt.Sprintf("%d records were rejected by the sink", rejects))
	}
	printWorst(got)
	fmt.Printf("\nkilled %d times, %d flights, lost %d, doubled %d\n", kills, flights, lost, doubled)
	fmt.Printf("%d rows in %s\n", len(got), databasePath(o.dir))
	if len(wrong) > 0 {
		slices.Sort(wrong)
		for _, w := range wrong[:min(len(wrong), 20)] {
			fmt.Println("  differs:", w)
		}
		return fmt.Errorf("%d of %d rows differ from the answer of the plain loop (repeat with --seed %d --kills %d)", len(wrong), len(answer), o.seed, o.kills)
	}
	return nil
}

type stored struct {
	Delays
	average float64
}

func readTable(ctx context.Context, path string) (_ map[StateDay]stored, rejects int, err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if cerr := db.Close(); err == nil {
			err = cerr
		}
	}()
	rows, err := db.QueryContext(ctx, "SELECT state, day, flights, minutes, average FROM state_days")
	if err != nil {
		return nil, 0, err
	}
	got := map[StateDay]stored{}
	for rows.Next() {
		var k StateDay
		var s stored
		if err := rows.Scan(&k.State, &k.Day, &s.Flights, &s.Minutes, &s.average); err != nil {
			return nil, 0, err
		}
		if _, twice := got[k]; twice {
			return nil, 0, fmt.Errorf("row %s %s is there twice", k.State, k.Day)
		}
		got[k] = s
	}
	if err := rows.Err(); err != nil {
		return nil, 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM _millrace_rejects").Scan(&rejects)
	return got, rejects, err
}

// printWorst prints the ten state-days of at least ten flights with the longest average delay.
func printWorst(table map[StateDay]stored) {
	type entry struct {
		StateDay
		Delays
	}
	var all []entry
	for k, s := range table {
		if s.Flights >= 10 {
			all = append(all, entry{k, s.Delays})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(average(b.Delays), average(a.Delays)), cmp.Compare(a.State, b.State), cmp.Compare(a.Day, b.Day))
	})
	fmt.Printf("\nworst state-days (of at least ten flights)\n  state  day         flights  average delay\n")
	for _, e := range all[:min(10, len(all))] {
		fmt.Printf("  %-5s  %s  %7d  %6.1f min\n", e.State, e.Day, e.Flights, average(e.Delays))
	}
}
