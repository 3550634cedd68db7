package conntest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/connectors/conntest"
)

// TestSoundSinkPasses: a sink that keeps the contract passes every case.
func TestSoundSinkPasses(t *testing.T) {
	kit := memoryKit(sound)
	kit.Cluster = brokertest.Start(t)
	conntest.RunSink(t, kit)
}

// TestUnnamedPoison: a sink that cannot tell which record is bad makes the
// runner search for it.
func TestUnnamedPoison(t *testing.T) {
	kit := memoryKit(unnamedPoison)
	kit.Cluster, kit.Only = brokertest.Start(t), "poison"
	conntest.RunSink(t, kit)
}

// TestBrokenSinksFail runs the kit against sinks that are broken in the known
// ways. Each must fail, and in the case that was made for it: a kit that cannot
// tell them from sound ones proves nothing.
func TestBrokenSinksFail(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		fault fault
		name  string
		cases []string // must be among the failures
	}{
		{fenceOnlyRead, "fence only read", []string{"contract/zombie-at-once/commit/position"}},
		{checkThenAct, "check, then act", []string{"contract/zombie-at-once/commit/data", "contract/zombie-at-once/commit/position"}},
		{positionFirst, "position committed before the data", []string{"contract/crash/commit/data", "contract/lost-reply/commit/data"}},
		{positionAfter, "position committed after the data", []string{"contract/crash/commit/position", "contract/lost-reply/commit/position"}},
		{noPositionCheck, "start of the batch not compared", []string{"contract/duplicate/same-batch", "contract/duplicate/other-boundaries", "contract/duplicate/gap"}},
		{ownerIgnored, "owner not compared", []string{"contract/same-epoch-other-owner-commit"}},
		{equalEpochOpens, "equal epoch takes over", []string{"contract/open/same-epoch-other-owner"}},
		{opensOneByOne, "take-over not atomic", []string{"contract/open/all-or-none"}},
		{lowerEpochOpens, "any epoch takes over", []string{"contract/open/lower-epoch", "contract/zombie/open/call"}},
		{rejectsApart, "rejects in a transaction of their own", []string{"contract/rejects"}},
		{swallowsPoison, "poison dropped", []string{"contract/poison"}},
		{blocksWithoutSayingSo, "blocks a take-over undeclared", []string{"contract/zombie/commit/data"}},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			kit := memoryKit(m.fault)
			kit.Seed = 1
			if m.fault == blocksWithoutSayingSo {
				kit.Only = m.cases[0] // each such case waits for its deadline
			}
			var failed []string
			for _, f := range conntest.Verify(t, kit) {
				if f.Err != nil {
					failed = append(failed, f.Case)
				}
			}
			for _, want := range m.cases {
				if !slices.Contains(failed, want) {
					t.Errorf("%s passes with this fault; failing are: %s", want, strings.Join(failed, ", "))
				}
			}
		})
	}
}
