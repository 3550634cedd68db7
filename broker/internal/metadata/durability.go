package metadata

// The durability of a topic's acknowledgements.
const (
	// Durability is the setting's name, at the topic's level and at the broker's.
	Durability = "millrace.durability"
	// FlushMs and FlushMessages bound what a relaxed durability may lose.
	FlushMs       = "flush.ms"
	FlushMessages = "flush.messages"

	DurabilityFsync    = "fsync"
	DurabilityInterval = "interval"
	DurabilityOS       = "os"

	// defaultFlushMs is the time between syncs under interval where nobody says another.
	defaultFlushMs = "1000"
)
