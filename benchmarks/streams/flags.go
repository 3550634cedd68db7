package main

import (
	"flag"
	"fmt"
	"time"
)

// flags are the program's.
type flags struct {
	kafka, java, classes, server, results, dir, only, profile string

	nexmark bool
	long    bool
	scale   float64
	slow    float64
	rounds  int
	limit   time.Duration
}

// parse reads the command line; jobs and queries are what -only may choose.
func parse(jobs, queries string) (flags, error) {
	var f flags
	flag.StringVar(&f.kafka, "kafka", "", "folder of Apache Kafka's jars, Kafka Streams included; without it only our own broker takes part")
	flag.StringVar(&f.java, "java", "benchmarks/streams/java", "folder of the jobs for Kafka Streams; javac compiles them before the run")
	flag.StringVar(&f.server, "server", "", "binary of our server (default: built from this module)")
	flag.StringVar(&f.results, "results", "", "write the page to this file")
	flag.StringVar(&f.dir, "dir", "", "folder for data and state; it must be on a real disk (default: the folder for temporary files)")
	flag.StringVar(&f.only, "only", "", "comma-separated work: "+jobs+"; with -nexmark: "+queries)
	flag.BoolVar(&f.nexmark, "nexmark", false, "measure the Nexmark queries in place of the jobs")
	flag.BoolVar(&f.long, "long", false, "the sizes that take hours: 5 GB of state for the restart, 100 million keys")
	flag.StringVar(&f.profile, "profile", "", "write a CPU and an allocation profile of each job of ours into this folder")
	flag.Float64Var(&f.scale, "scale", 1, "multiplies the number of records and -limit: 0.1 is a short run")
	flag.Float64Var(&f.slow, "patience", 1, "multiplies what each piece of work may take before it is given up: for a busy machine")
	flag.IntVar(&f.rounds, "rounds", 3, "rounds, at least 1")
	flag.DurationVar(&f.limit, "limit", 15*time.Minute, "a run ends after that, with what it has")
	flag.Parse()
	switch {
	case f.rounds < 1:
		return f, fmt.Errorf("-rounds is %d, must be at least 1", f.rounds)
	case f.slow <= 0:
		return f, fmt.Errorf("-patience is %v, must be above 0", f.slow)
	case f.scale <= 0:
		return f, fmt.Errorf("-scale is %v, must be above 0", f.scale)
	}
	f.limit = time.Duration(max(f.scale, 1) * float64(f.limit))
	return f, nil
}
