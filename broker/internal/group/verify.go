package group

// verifications are the transactional commits whose producer is being asked about
// at the transaction coordinator: under transaction version 1 a marker and the next
// transaction have the same epoch, so that a commit that was verified before the
// marker and arrives behind it would open a transaction that nobody ends
// (KAFKA-14884). A marker ends the verifications of its producer. Version 2 needs
// none of this: there the marker's epoch fences what is late.
type verifications struct {
	byProducer map[int64]verification
	last       uint64
	sweepAt    int // number at which old ones are looked for
}

type verification struct {
	id      uint64
	sinceMs int64
}

const (
	// verificationMs bounds how long one is remembered that came to nothing: far
	// longer than a coordinator needs to answer.
	verificationMs = 10 * 60 * 1000
	leastSweep     = 1024
)

// begin names the verification of a producer; all commits of a transaction share it.
func (v *verifications) begin(pid, nowMs int64) uint64 {
	if have, ok := v.byProducer[pid]; ok {
		return have.id
	}
	if v.byProducer == nil {
		v.byProducer, v.sweepAt = map[int64]verification{}, leastSweep
	}
	if len(v.byProducer) >= v.sweepAt {
		for pid, have := range v.byProducer {
			if nowMs-have.sinceMs > verificationMs {
				delete(v.byProducer, pid)
			}
		}
		v.sweepAt = max(leastSweep, 2*len(v.byProducer))
	}
	v.last = max(v.last, uint64(nowMs)) + 1 // another one than before a load
	v.byProducer[pid] = verification{v.last, nowMs}
	return v.last
}

// stands says whether nothing ended the verification.
func (v *verifications) stands(pid int64, id uint64) bool {
	have, ok := v.byProducer[pid]
	return ok && have.id == id
}

func (v *verifications) end(pid int64) { delete(v.byProducer, pid) }

// BeginVerify is called before the transaction coordinator is asked whether a
// producer's transaction has this partition in it. What it returns, never 0, goes
// into the Commit.
func (m *Machine) BeginVerify(nowMs, producerID int64) uint64 {
	return m.verifications.begin(producerID, nowMs)
}
