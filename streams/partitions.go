package streams

import (
	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/topology"
)

// Partitions gives the topic of a Repartition so many partitions. Without it, it
// has as many as what its records are joined with, or else as the largest topic
// they come from.
func Partitions(n int32) Opt { return Opt{"Partitions", func(o *options) { o.partitions = n }} }

// PartitionBy chooses the partition of each record that To, Route or Repartition
// writes, a number from 0 to partitions-1. Without it the key decides as in Kafka's
// own clients. f is called by several tasks at a time. What is joined or looked up
// by key must be partitioned the same way on both sides.
func PartitionBy[K, V any](f func(r *Record[K, V], partitions int32) int32) Opt {
	return Opt{"PartitionBy", func(o *options) { o.partition = f }}
}

// partitioner is what PartitionBy was given, as a node of one task calls it; nil
// without it.
func partitioner[K, V any](a *App, n *topology.Node, o options) func() operator.PartitionFunc[K, V] {
	if o.partition == nil {
		return nil
	}
	f, ok := o.partition.(func(*Record[K, V], int32) int32)
	if !ok {
		a.graph.Fail(n, "the records are %s, PartitionBy has a %T", pair[K, V](), o.partition)
		return nil
	}
	return func() operator.PartitionFunc[K, V] {
		var in Record[K, V]
		return func(r *operator.Record[K, V], partitions int32) int32 {
			in.show(r)
			return f(&in, partitions)
		}
	}
}
