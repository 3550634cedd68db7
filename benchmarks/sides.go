package main

import "github.com/millrace/millrace/benchmarks/figures"

// Who gives figures.
const (
	ourSide    figures.Side = "Millrace"
	kafkaSide  figures.Side = "Apache Kafka"
	clientSide figures.Side = "client's ceiling" // the in-memory broker: what the client allows
	diskSide   figures.Side = "disk"             // no broker at all
)

var sides = []figures.Side{ourSide, kafkaSide, clientSide, diskSide}
