package main

import "slices"

// brokerWork is every workload that a broker takes part in, in this order: the last one kills it with all that the others
// have left in its log.
func brokerWork() []workload {
	return slices.Concat(startWork(), throughputWork(), ackWork(), pacedWork(), transactionWork(), pipelineWork(), lifecycleWork())
}
