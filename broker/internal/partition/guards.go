package partition

// guards are the verifications under way: for a producer that has no transaction open here, the proof that the coordinator
// was asked after everything that ended an earlier one. All requests of a producer and epoch share a guard, as the first of
// them to append opens the transaction for the others. A marker drops the guard, so that an answer of the coordinator from
// before the marker opens nothing (KAFKA-14884). The append lock owns it.
//
// A guard also knows the lowest sequence that asked for it. A producer of which the log knows nothing may start anywhere, but not
// behind a batch of its own that was seen here and is not in the log: that one was refused for a reason that passes, such as a
// coordinator that loads, and comes again. Were the batches behind it taken meanwhile it could never be.
type guards struct {
	byProducer map[int64]guard
	last       uint64
	sweepAt    int // number of guards at which old ones are looked for
}

type guard struct {
	id      uint64
	epoch   int16
	lowest  int32
	sinceMs int64
}

// guardLifeMs bounds how long a verification that never came to an append is remembered: far longer than a coordinator needs
// to answer.
const guardLifeMs = 10 * 60 * 1000

// begin returns the guard of a producer and epoch, for a batch that begins with a sequence; the zero Guard, which verifies nothing,
// for an epoch that is fenced.
func (g *guards) begin(producerID int64, epoch int16, sequence int32, nowMs int64) Guard {
	if have, ok := g.byProducer[producerID]; ok {
		switch {
		case have.epoch == epoch:
			if sequence < have.lowest {
				have.lowest = sequence
				g.byProducer[producerID] = have
			}
			return Guard{have.id}
		case have.epoch > epoch:
			return Guard{}
		}
	}
	if g.byProducer == nil {
		g.byProducer, g.sweepAt = map[int64]guard{}, 1024
	}
	if len(g.byProducer) >= g.sweepAt {
		for id, have := range g.byProducer {
			if nowMs-have.sinceMs > guardLifeMs {
				delete(g.byProducer, id)
			}
		}
		g.sweepAt = max(1024, 2*len(g.byProducer))
	}
	g.last++
	g.byProducer[producerID] = guard{g.last, epoch, sequence, nowMs}
	return Guard{g.last}
}

// holds tells whether a guard still stands for this producer and epoch.
func (g *guards) holds(guard Guard, producerID int64, epoch int16) bool {
	have, ok := g.byProducer[producerID]
	return ok && guard.id != 0 && have.id == guard.id && have.epoch == epoch
}

// missing gives the sequence of a batch that was seen here, comes before one with the given sequence, and is not in the log.
func (g *guards) missing(producerID int64, epoch int16, sequence int32) (lowest int32, ok bool) {
	have, any := g.byProducer[producerID]
	return have.lowest, any && have.epoch == epoch && have.lowest < sequence
}

// drop ends the verification of a producer.
func (g *guards) drop(producerID int64) { delete(g.byProducer, producerID) }
