package cases

import (
	"net"
	"strings"
	"testing"
)

// need names what a case must be able to do to its broker beyond speaking to it.
type need int

const (
	speak   need = iota // any broker by address
	restart             // stop it cleanly and start it again
	crash               // cut its power, fill or break its disk
)

type testCase struct {
	id, source string
	need       need
	run        func(*target)
}

// ownBroker is the power that a case has over the embedded broker.
type ownBroker interface {
	dialer
	// Restart stops the broker cleanly and starts it on the same files.
	Restart(t testing.TB)
	// Crash ends the broker without a clean stop, drops what was not synced, and starts it again.
	Crash(t testing.TB, seed uint64)
	// FailDisk makes operations of the kind ("write", "sync") on files whose path contains part fail until healed.
	FailDisk(kind, part string) (heal func())
}

func all() []testCase {
	var cs []testCase
	cs = append(cs, transactionCases...)
	cs = append(cs, transactionLogCases...)
	cs = append(cs, fenceCases...)
	cs = append(cs, openCases...)
	cs = append(cs, rebornCases...)
	cs = append(cs, describeCases...)
	cs = append(cs, produceCases...)
	cs = append(cs, edgeCases...)
	cs = append(cs, fetchCases...)
	cs = append(cs, sessionCases...)
	cs = append(cs, bounceCases...)
	cs = append(cs, versionCases...)
	cs = append(cs, groupCases...)
	cs = append(cs, storageCases...)
	cs = append(cs, cleanCases...)
	cs = append(cs, memberCases...)
	cs = append(cs, adminCases...)
	cs = append(cs, downCases...)
	return cs
}

func TestCases(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range all() {
		if seen[c.id] {
			t.Fatalf("case %s is listed twice", c.id)
		}
		seen[c.id] = true
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			if *brokersFlag != "" {
				if c.need != speak {
					t.Skipf("%s needs power over the broker's process or disk; run it without -brokers", c.id)
				}
				c.run(newTarget(t, &external{Dialer: net.Dialer{Timeout: answerLimit}, seeds: strings.Split(*brokersFlag, ",")}, nil))
				return
			}
			own := startOwn(t)
			c.run(newTarget(t, own, own))
		})
	}
}
