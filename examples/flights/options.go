package main

import (
	"crypto/rand"
	"encoding/binary"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
)

// options are the flags, and what the parent passes on to its children.
type options struct {
	kills   int
	seed    uint64
	brokers []string
	dir     string
	prefix  string // of every topic, group and id of this run on a foreign cluster
	child   bool
	flights int // in the file; for the child's progress
}

func parse(args []string) (options, error) {
	var o options
	var brokers string
	fs := flag.NewFlagSet("flights", flag.ContinueOnError)
	fs.IntVar(&o.kills, "kills", 2, "how often the process with broker, source, job and sink is killed (0..20)")
	fs.Uint64Var(&o.seed, "seed", 0, "seed of the moments of the kills (default: random, printed)")
	fs.StringVar(&brokers, "brokers", "", "run on this cluster (host:port,…) of the Kafka protocol instead of an embedded broker")
	fs.StringVar(&o.dir, "dir", "", "folder for broker, state and result (default: a new temporary folder)")
	fs.StringVar(&o.prefix, "prefix", "", "prefix of topics and groups (default with --brokers: random)")
	fs.BoolVar(&o.child, "child", false, "be the process that is killed (used by the demo itself)")
	fs.IntVar(&o.flights, "flights", 0, "number of flights in the file (used by the demo itself)")
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "Flights in, an exactly-once result out, killed in the middle.\n\n  go run ./examples/flights --kills 3 --seed 7\n\n")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.kills < 0 || o.kills > 20 {
		return o, fmt.Errorf("--kills is %d, must be 0..20", o.kills)
	}
	o.brokers = strings.FieldsFunc(brokers, func(r rune) bool { return r == ',' || r == ' ' })
	if o.seed == 0 {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return o, err
		}
		o.seed = binary.BigEndian.Uint64(b[:]) >> 32
	}
	if o.prefix == "" && len(o.brokers) > 0 {
		o.prefix = "flights-" + strings.ToLower(rand.Text()[:8]) + "-"
	}
	return o, nil
}

// childArgs are the arguments of the children of a parent with these options.
func (o options) childArgs() []string {
	args := []string{"--child", "--dir", o.dir, "--prefix", o.prefix, "--flights", fmt.Sprint(o.flights)}
	if len(o.brokers) > 0 {
		args = append(args, "--brokers", strings.Join(o.brokers, ","))
	}
	return args
}

// databasePath is the SQLite file of a run.
func databasePath(dir string) string { return filepath.Join(dir, "flights.db") }
