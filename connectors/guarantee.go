package connectors

import "fmt"

// Guarantee says how often a record of the input may show in the output.
// A higher value is stronger, so the weakest part of a chain is the smallest.
type Guarantee int

const (
	// AtLeastOnce: nothing is lost, a record may show more than once, and a
	// record of an aborted transaction may show at all.
	AtLeastOnce Guarantee = iota + 1
	// EffectivelyOnce: repeats may be written, but the final state per key is
	// the same as if each record had been written once.
	EffectivelyOnce
	// ExactlyOnce: each committed record of the input shows once.
	ExactlyOnce
)

// String returns the name used in status, logs and metrics labels.
func (g Guarantee) String() string {
	switch g {
	case AtLeastOnce:
		return "at-least-once"
	case EffectivelyOnce:
		return "effectively-once"
	case ExactlyOnce:
		return "exactly-once"
	}
	return fmt.Sprintf("Guarantee(%d)", int(g))
}

// MarshalText writes the name.
func (g Guarantee) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// Class says by what means a store takes part in exactly once. More classes, for
// stores that publish what was staged, or that finish a prepared transaction,
// come with their own interfaces beside [TxSink].
type Class int

const (
	// Transactional stores commit data, positions and fence in one transaction.
	Transactional Class = iota + 1
	// Versioned stores refuse a write per key that is older than what they hold.
	Versioned
	// Plain stores offer nothing of this.
	Plain
)

var classNames = [...]string{"", "transactional", "versioned", "plain"}

// String returns the name used in status and documentation.
func (c Class) String() string {
	if !c.Valid() {
		return fmt.Sprintf("Class(%d)", int(c))
	}
	return classNames[c]
}

// Valid reports whether c is one of the classes.
func (c Class) Valid() bool { return c >= Transactional && c <= Plain }

// Max returns the strongest guarantee a store of the class can give.
func (c Class) Max() Guarantee {
	switch c {
	case Transactional:
		return ExactlyOnce
	case Versioned:
		return EffectivelyOnce
	}
	return AtLeastOnce
}

// Isolation says which records of the input a sink sees.
type Isolation int

const (
	// ReadCommitted (the zero value) shows records of committed transactions
	// and records written outside transactions.
	ReadCommitted Isolation = iota
	// ReadUncommitted also shows records whose transaction is open or aborted.
	ReadUncommitted
)

// String returns Kafka's name of the level.
func (i Isolation) String() string {
	switch i {
	case ReadCommitted:
		return "read_committed"
	case ReadUncommitted:
		return "read_uncommitted"
	}
	return fmt.Sprintf("Isolation(%d)", int(i))
}

// Weakness is one reason why less is guaranteed than the class allows.
type Weakness struct {
	Guarantee Guarantee // what is left
	Reason    string    // which setting, and what it does
}

// Spec is what a configured sink can do. It is computed from the settings
// alone, without touching the store.
type Spec struct {
	Connector string // "sqlite"
	// Name is the identity of this sink: with topic and partition it is the key
	// of the stored positions, so two sinks must not share it, and a sink that
	// is renamed starts anew.
	Name  string
	Class Class
	// Weakened lists the settings that lower the guarantee below Class.Max.
	Weakened []Weakness
	// Rejects: the sink stores Batch.Rejects in the transaction of the batch.
	Rejects bool
	// BlocksTakeOver: a writer frozen inside its transaction makes Open of the
	// next owner answer ErrRetry until that writer dies or its deadline passes
	// (single-writer stores). Safety is not affected, only how soon work goes on.
	BlocksTakeOver bool
}

// Stated is the guarantee a configured connector can honestly state.
type Stated struct {
	Guarantee Guarantee
	Class     Class
	Because   []Weakness // empty when the class's maximum is reached
}

// String names the guarantee and each reason for a lower one.
func (s Stated) String() string {
	out := fmt.Sprintf("%s (class %s)", s.Guarantee, s.Class)
	for _, w := range s.Because {
		out += fmt.Sprintf("; %s: %s", w.Guarantee, w.Reason)
	}
	return out
}

// Guaranteed computes the guarantee of a sink: the minimum over its class, its
// configuration and the isolation level it reads with.
func Guaranteed(s Spec, level Isolation) Stated {
	out := Stated{Guarantee: s.Class.Max(), Class: s.Class}
	lower := func(w Weakness) {
		if w.Guarantee < s.Class.Max() {
			out.Because = append(out.Because, w)
			out.Guarantee = min(out.Guarantee, w.Guarantee)
		}
	}
	for _, w := range s.Weakened {
		lower(w)
	}
	if level != ReadCommitted {
		lower(Weakness{AtLeastOnce, "isolation " + level.String() + " shows records of aborted transactions"})
	}
	return out
}

// Allow returns an error that matches [ErrConfig] when the guarantee is below
// what the class can give and the caller did not agree to less.
func (s Stated) Allow(weaker bool) error {
	if weaker || len(s.Because) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the settings weaken the guarantee: %s; set AllowWeaker to accept it", ErrConfig, s)
}
