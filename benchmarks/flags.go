package main

import (
	"flag"
	"fmt"
	"time"
)

// flags are the program's.
type flags struct {
	brokers, only, kafka, results, dir, profile, server, kfake string

	alone   bool
	scale   float64
	seconds time.Duration
	limit   time.Duration
	rounds  int
}

// parse reads the command line.
func parse() (flags, error) {
	var f flags
	flag.StringVar(&f.brokers, "brokers", "", "measure this cluster (host:port,…) instead of our own server binary")
	flag.StringVar(&f.only, "only", "", "comma-separated workloads: start,produce,acks,paced,transactions,pipeline,topics,restart; with -alone: segments,partitions,idle,readers,connections")
	flag.DurationVar(&f.seconds, "seconds", 3*time.Second, "length of the timed part of a workload")
	flag.Float64Var(&f.scale, "scale", 1, "multiplies -seconds and -limit: 3 makes a run three times as long")
	flag.DurationVar(&f.limit, "limit", 15*time.Minute, "a run of -kafka or -alone ends after that, with what it has")
	flag.StringVar(&f.kafka, "kafka", "", "folder of Apache Kafka's jars: measure it and our server in turn")
	flag.IntVar(&f.rounds, "rounds", 3, "rounds of -kafka and -alone, at least 1")
	flag.StringVar(&f.results, "results", "", "write the page of -kafka or -alone to this file")
	flag.BoolVar(&f.alone, "alone", false, "what has to stay flat or bounded on our server: cost per operation by segments and partitions, memory, readers far behind")
	flag.StringVar(&f.profile, "profile", "", "run the workloads of -only on our server and write its pprof files into this folder")
	flag.StringVar(&f.dir, "dir", "", "folder for data folders; it must be on a real disk (default: the folder for temporary files)")
	flag.StringVar(&f.server, "server", "", "binary of our server to measure (default: built from this module)")
	flag.StringVar(&f.kfake, "serve-kfake", "", "be the in-memory broker of the ceiling at this address; the program starts itself so")
	flag.Parse()
	switch {
	case f.rounds < 1:
		return f, fmt.Errorf("-rounds is %d, must be at least 1", f.rounds)
	case f.scale <= 0:
		return f, fmt.Errorf("-scale is %v, must be above 0", f.scale)
	case f.seconds <= 0:
		return f, fmt.Errorf("-seconds is %v, must be above 0", f.seconds)
	}
	f.seconds = time.Duration(f.scale * float64(f.seconds))
	f.limit = time.Duration(f.scale * float64(f.limit))
	return f, nil
}
