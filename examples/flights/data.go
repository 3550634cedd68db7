package main

import (
	"compress/gzip"
	"embed"
	"encoding/csv"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The data travels inside the program, so that the demo runs from any folder.
//
//go:embed data/flights-20k.json.gz data/airports.csv.gz
var data embed.FS

const (
	flightsFile  = "flights-20k.json.gz"
	airportsFile = "airports.csv.gz"
	// dateLayout is how the file writes the local departure time; the demo takes it as UTC, so a day is the local day.
	dateLayout = "2006/01/02 15:04"
)

// Flight is one row of the flights file.
type Flight struct {
	Date        string `json:"date"`  // local departure time
	Delay       int64  `json:"delay"` // minutes, negative when early
	Distance    int64  `json:"distance"`
	Origin      string `json:"origin"`
	Destination string `json:"destination"`
}

// Airport is one row of the airports file, as far as the job needs it.
type Airport struct {
	IATA  string `json:"iata"`
	Name  string `json:"name"`
	City  string `json:"city"`
	State string `json:"state"`
}

// unpack writes the two files into a folder, for the file source to read them as any user's files.
func unpack(dir string) error {
	for _, name := range []string{flightsFile, airportsFile} {
		b, err := fs.ReadFile(data, "data/"+name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func open(name string) (io.ReadCloser, error) {
	f, err := data.Open("data/" + name)
	if err != nil {
		return nil, err
	}
	return gzip.NewReader(f)
}

// StateDay names one row of the answer.
type StateDay struct {
	State string
	Day   string // 2001-01-31
}

// Delays is the number of flights of a state on a day and the sum of their delays in minutes.
type Delays struct {
	Flights int64 `json:"flights"`
	Minutes int64 `json:"minutes"`
}

// plainLoop computes the answer without any of the machinery: what the table must hold at the end.
func plainLoop() (answer map[StateDay]Delays, flights, airports int, err error) {
	state := map[string]string{}
	if airports, err = eachAirport(func(a Airport) { state[a.IATA] = a.State }); err != nil {
		return nil, 0, 0, err
	}
	answer = map[StateDay]Delays{}
	all, err := readFlights()
	if err != nil {
		return nil, 0, 0, err
	}
	for _, f := range all {
		s, known := state[f.Origin]
		if !known {
			continue // an inner join drops it too
		}
		t, err := time.Parse(dateLayout, f.Date)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("%s: %w", flightsFile, err)
		}
		k := StateDay{State: s, Day: t.Format(time.DateOnly)}
		d := answer[k]
		d.Flights++
		d.Minutes += f.Delay
		answer[k] = d
		flights++
	}
	return answer, flights, airports, nil
}

func readFlights() ([]Flight, error) {
	r, err := open(flightsFile)
	if err != nil {
		return nil, err
	}
	var all []Flight
	if err := json.UnmarshalRead(r, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", flightsFile, err)
	}
	return all, r.Close()
}

func eachAirport(f func(Airport)) (int, error) {
	r, err := open(airportsFile)
	if err != nil {
		return 0, err
	}
	rows := csv.NewReader(r)
	if _, err := rows.Read(); err != nil { // the header
		return 0, fmt.Errorf("%s: %w", airportsFile, err)
	}
	for n := 0; ; n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return n, r.Close()
		}
		if err != nil {
			return 0, fmt.Errorf("%s, row %s: %w", airportsFile, strconv.Itoa(n), err)
		}
		f(Airport{IATA: row[0], Name: row[1], City: row[2], State: row[3]})
	}
}
