package group

// State is the state of a classic group.
type State int8

const (
	// Empty has no members. It may have offsets, and members that were told their
	// id and have not joined with it yet. Follows every other state.
	Empty State = iota
	// PreparingRebalance waits for the members to join. Follows Empty (first
	// member), Stable and CompletingRebalance (a member came, went or changed).
	PreparingRebalance
	// CompletingRebalance has a new generation and waits for its leader's
	// assignment. Follows PreparingRebalance.
	CompletingRebalance
	// Stable has an assignment. Follows CompletingRebalance, or a load.
	Stable
	// Dead is the state of a group that does not exist.
	Dead
)

// String gives the name that Kafka's tools print.
func (s State) String() string {
	switch s {
	case Empty:
		return "Empty"
	case PreparingRebalance:
		return "PreparingRebalance"
	case CompletingRebalance:
		return "CompletingRebalance"
	case Stable:
		return "Stable"
	}
	return "Dead"
}
