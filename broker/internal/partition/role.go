package partition

// Role is what this broker is to a partition: a [Leader] or a [Follower].
type Role interface {
	// epoch is the leader epoch under which the role was given.
	epoch() int32
	// high is the high watermark when everything below durable is synced here.
	high(durable int64) int64
}

// Leader appends what clients send. Being the only replica in sync, it has the high watermark at its own durable offset.
type Leader struct{ Epoch int32 }

func (l Leader) epoch() int32             { return l.Epoch }
func (l Leader) high(durable int64) int64 { return durable }

// Follower takes batches from the leader. Its high watermark is the leader's, but never above what is durable here.
type Follower struct {
	Epoch      int32
	LeaderHigh int64 // as the leader last said
}

func (f Follower) epoch() int32             { return f.Epoch }
func (f Follower) high(durable int64) int64 { return min(durable, f.LeaderHigh) }
