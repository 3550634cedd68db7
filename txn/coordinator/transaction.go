package coordinator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxDataEpoch is the last epoch that data may carry. The one above it, 32767, is
// for the marker that ends such a transaction or fences its producer.
const maxDataEpoch = 32766

// NoTimeout is the timeout of a transaction that takes part in a two-phase commit:
// whoever leads that commit ends it, and nobody else. Kafka's log has no other mark
// of such a transaction.
const NoTimeout int32 = math.MaxInt32

// none stands for a producer id, an epoch or a time that is not there.
const none = -1

// TopicPartition names a partition that takes part in a transaction.
type TopicPartition struct {
	Topic     string
	Partition int32
}

func comparePartitions(a, b TopicPartition) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// metadata is all that the log holds about one transactional id. It is a value: a
// handler makes the next one, writes it, and Replay puts it in place.
type metadata struct {
	//
	// producerID and epoch are those that the records and the markers of the open
	// transaction carry.
	producerID int64
	// previousID is the id before the last change of state; it differs from
	// producerID only right after the epochs of an id were used up, and while the
	// decision on a kept transaction is under way: then it is the id that decided.
	previousID int64
	// nextID is the id that the decision under way ends in, none if it stays. While
	// Kept it is the id of the owner.
	nextID int64
	epoch  int16
	// lastEpoch is the epoch that the rightful owner had before the coordinator
	// raised it without the owner having heard for sure; with it the owner may come
	// back (KIP-360). none when there is no such owner: a rival took the id.
	lastEpoch int16
	// nextEpoch belongs to nextID. It is set while Kept, and while the decision on a
	// kept transaction is under way; else a next id begins with epoch 0.
	nextEpoch int16
	timeoutMs int32
	// nextTimeoutMs is what the owner of a kept transaction asked for, and has after
	// it; none if it is timeoutMs.
	nextTimeoutMs int32
	state         State
	// partitions is sorted and never changed in place. nil in Empty, empty in
	// Complete…, as Kafka writes it.
	partitions []TopicPartition
	startMs    int64
	updateMs   int64
	// clientVersion is 2 once a client of transaction version 2 added a partition.
	clientVersion int16
	// cause says who decided on PrepareAbort and CompleteAbort.
	cause Cause
}

// to makes the metadata that follows in state s at nowMs; ok is false if s may not
// follow. What the new state does not carry is cleared.
func (md metadata) to(s State, nowMs int64) (next metadata, ok bool) {
	next = md
	next.previousID = md.producerID
	next.nextID, next.nextEpoch = none, none
	if !s.deciding() && s != Kept {
		next.nextTimeoutMs = none
	}
	next.state, next.updateMs = s, nowMs
	if s != CompleteAbort {
		next.cause = ByClient
	}
	return next, s.Follows(md.state)
}

// identity is a producer id with an epoch, as a client has it.
type identity struct {
	producerID int64
	epoch      int16
}

// owner is the identity with which the rightful client comes, in a state in which no
// decision is under way.
func (md metadata) owner() identity {
	if md.state == Kept {
		return identity{md.nextID, md.nextEpoch}
	}
	return identity{md.producerID, md.epoch}
}

// exhausted says that the id has no epoch left for another producer.
func (o identity) exhausted() bool { return o.epoch >= maxDataEpoch }

// twoPhase says that the open transaction waits for a decision without a timeout.
func (md metadata) twoPhase() bool { return md.state.open() && md.timeoutMs == NoTimeout }

// timeout is when the open transaction is aborted.
func (md metadata) timeout() (ms int64, ok bool) {
	if !md.state.open() || md.timeoutMs == NoTimeout {
		return 0, false
	}
	return md.startMs + int64(md.timeoutMs), true
}

// rotatedFrom says that pid gave way to the present id because its epochs, up to
// this one, were used up.
func (md metadata) rotatedFrom(pid int64, epoch int16) bool {
	return pid != md.producerID && pid == md.previousID && epoch >= maxDataEpoch && md.lastEpoch == epoch
}

// bumped says that the decision under way carries a higher epoch than the data, so
// that a partition can tell a repeated marker from the first.
func (md metadata) bumped() bool {
	return md.clientVersion >= 2 || md.cause != ByClient
}

// with returns the partitions with more added, sorted; the old slice stays.
func (md metadata) with(more []TopicPartition) []TopicPartition {
	out := make([]TopicPartition, 0, len(md.partitions)+len(more))
	out = append(append(out, md.partitions...), more...)
	slices.SortFunc(out, comparePartitions)
	return slices.Compact(out)
}

func (md metadata) has(tp TopicPartition) bool {
	_, ok := slices.BinarySearchFunc(md.partitions, tp, comparePartitions)
	return ok
}

func (md metadata) hasAll(tps []TopicPartition) bool {
	for _, tp := range tps {
		if !md.has(tp) {
			return false
		}
	}
	return true
}

// dump writes one line with every durable field.
func (md metadata) dump(b *strings.Builder) {
	fmt.Fprintf(b, "%s pid=%d epoch=%d", md.state, md.producerID, md.epoch)
	if md.previousID != md.producerID {
		fmt.Fprintf(b, " previous=%d", md.previousID)
	}
	if md.nextID != none {
		fmt.Fprintf(b, " next=%d", md.nextID)
	}
	if md.nextEpoch != none {
		fmt.Fprintf(b, " next-epoch=%d", md.nextEpoch)
	}
	if md.lastEpoch != none {
		fmt.Fprintf(b, " last=%d", md.lastEpoch)
	}
	if md.cause != ByClient {
		fmt.Fprintf(b, " cause=%s", md.cause)
	}
	fmt.Fprintf(b, " client=v%d timeout=%d start=%d update=%d", md.clientVersion, md.timeoutMs, md.startMs, md.updateMs)
	if md.nextTimeoutMs != none {
		fmt.Fprintf(b, " next-timeout=%d", md.nextTimeoutMs)
	}
	for i, tp := range md.partitions {
		sep := ","
		if i == 0 {
			sep = " "
		}
		fmt.Fprintf(b, "%s%s-%d", sep, tp.Topic, tp.Partition)
	}
}
