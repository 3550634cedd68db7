package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// engine is what runs a job.
type engine string

const (
	millraceEngine engine = "millrace"
	kstreamsEngine engine = "kstreams"
	gokaEngine     engine = "goka"
)

// pebbleStore is Pebble as the engine of our stores.
const pebbleStore = "pebble"

// spec is a job for a process: what it is, where it reads and writes. It travels as arguments key=value, which the Java
// program reads too.
type spec struct {
	engine   engine
	job      string
	id       string // of the application: its group and the prefix of its topics
	brokers  string
	in, out  string
	dir      string // of the state
	total    int64  // records to read; the last one is told
	middle   int64  // number of the record that is told between the first and the last; 0 for half of them
	workers  int
	commit   time.Duration
	cached   bool   // updates are merged until the commit
	store    string // the engine of our stores; empty for the default
	settings string // of Kafka Streams, key:value and commas
	profile  string // folder for profiles of ours
}

func (s spec) args() []string {
	return []string{
		"engine=" + string(s.engine), "job=" + s.job, "id=" + s.id, "brokers=" + s.brokers, "in=" + s.in, "out=" + s.out, "dir=" + s.dir,
		"total=" + strconv.FormatInt(s.total, 10), "middle=" + strconv.FormatInt(cmp.Or(s.middle, s.total/2), 10), "workers=" + strconv.Itoa(max(1, s.workers)),
		"commitMs=" + strconv.FormatInt(s.commit.Milliseconds(), 10), "cached=" + strconv.FormatBool(s.cached),
		"store=" + s.store, "settings=" + s.settings, "profile=" + s.profile,
	}
}

func readSpec(args []string) (spec, error) {
	var s spec
	var ms int64
	var err error
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "engine":
			s.engine = engine(value)
		case "job":
			s.job = value
		case "id":
			s.id = value
		case "brokers":
			s.brokers = value
		case "in":
			s.in = value
		case "out":
			s.out = value
		case "dir":
			s.dir = value
		case "total":
			s.total, err = strconv.ParseInt(value, 10, 64)
		case "middle":
			s.middle, err = strconv.ParseInt(value, 10, 64)
		case "workers":
			s.workers, err = strconv.Atoi(value)
		case "commitMs":
			ms, err = strconv.ParseInt(value, 10, 64)
			s.commit = time.Duration(ms) * time.Millisecond
		case "cached":
			s.cached, err = strconv.ParseBool(value)
		case "store":
			s.store = value
		case "settings":
			s.settings = value
		case "profile":
			s.profile = value
		default:
			err = fmt.Errorf("nobody knows it")
		}
		if err != nil {
			return s, fmt.Errorf("argument %q: %w", arg, err)
		}
	}
	return s, nil
}
