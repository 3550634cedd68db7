package cases

import (
	"flag"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// versionCases are about the two versions of the transaction protocol side by side. They are ours, and have no number of a
// report. The level of a feature is the cluster's: a case that changes it puts it back, and against an address it runs only
// if -levels says that nobody else is disturbed by it.
var versionCases = []testCase{
	{"features", "KIP-584, KIP-778", speak, levelsOfFeatures},
	{"late", "KIP-890, KAFKA-17754", speak, lateRequestsOfTheLastTransaction},
	{"level", "KIP-890", speak, versionIsThatOfTheRequest},
}

var levelsFlag = flag.Bool("levels", false, "also run the cases that change the feature levels of the cluster; name them with -run, one at a time")

// mayChangeLevels skips a case where the cluster is not its own.
func (tg *target) mayChangeLevels() {
	tg.Helper()
	if tg.own == nil && !*levelsFlag {
		tg.Skip("changes the levels of the whole cluster; see -levels")
	}
}

const transactionVersion = "transaction.version"

// levelChange is one change of UpdateFeatures.
type levelChange struct {
	name  string
	level int16
	way   int8 // 1 up, 2 down, 3 down though something is lost
}

func (tg *target) setLevels(version int16, dryRun bool, changes ...levelChange) *kmsg.UpdateFeaturesResponse {
	tg.Helper()
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.Version, req.ValidateOnly, req.TimeoutMillis = version, dryRun, 30_000
	for _, c := range changes {
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		u.Feature, u.MaxVersionLevel, u.UpgradeType, u.AllowDowngrade = c.name, c.level, c.way, c.way > 1
		req.FeatureUpdates = append(req.FeatureUpdates, u)
	}
	return tg.seed().do(req).(*kmsg.UpdateFeaturesResponse)
}

// level is the finalized level of transaction.version, 0 if it has none, and the epoch of all levels.
func (tg *target) level() (int16, int64) {
	tg.Helper()
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 4, "cases", "1"
	resp := tg.seed().do(req).(*kmsg.ApiVersionsResponse)
	supported := slices.ContainsFunc(resp.SupportedFeatures, func(f kmsg.ApiVersionsResponseSupportedFeature) bool {
		return f.Name == transactionVersion && f.MinVersion == 0 && f.MaxVersion == 2
	})
	if !supported {
		tg.Fatalf("supported features: %v", resp.SupportedFeatures)
	}
	for _, f := range resp.FinalizedFeatures {
		if f.Name == transactionVersion {
			return f.MaxVersionLevel, resp.FinalizedFeaturesEpoch
		}
	}
	return 0, resp.FinalizedFeaturesEpoch
}

// awaitLevel waits for a level: brokers learn of it a moment after the answer.
func (tg *target) awaitLevel(want int16) (epoch int64) {
	tg.Helper()
	tg.eventually("the level", func() (bool, string) {
		at, e := tg.level()
		epoch = e
		return at == want, fmt.Sprintf("it is %d", at)
	})
	return epoch
}

// levelsOfFeatures: what UpdateFeatures takes and refuses, as Apache Kafka 4.4 does, and that ApiVersions shows it.
func levelsOfFeatures(tg *target) {
	tg.mayChangeLevels()
	defer tg.setLevels(1, false, levelChange{transactionVersion, 2, 1})
	up := func(level int16) levelChange { return levelChange{transactionVersion, level, 1} }
	down := func(level int16) levelChange { return levelChange{transactionVersion, level, 2} }
	nonsense := levelChange{"nonsense", 1, 1}
	for i, c := range []struct {
		version int16
		dryRun  bool
		changes []levelChange
		refused bool
		level   int16 // afterwards
	}{
		{0, false, nil, false, 2},
		{1, false, nil, false, 2},
		{1, false, []levelChange{up(2)}, false, 2},
		{1, false, []levelChange{up(3)}, true, 2},
		{2, false, []levelChange{up(-1)}, true, 2},
		{2, false, []levelChange{up(1)}, true, 2},
		{0, false, []levelChange{down(1)}, true, 2}, // version 0 only goes up, whatever its flag says
		{1, true, []levelChange{down(1)}, false, 2},
		{2, true, []levelChange{down(0)}, false, 2},
		{1, false, []levelChange{nonsense}, true, 2},
		{1, false, []levelChange{{"", 1, 1}}, true, 2},
		{1, false, []levelChange{{transactionVersion, 1, 0}}, true, 2},
		{2, false, []levelChange{{transactionVersion, 1, 9}}, true, 2},
		{1, false, []levelChange{down(1), nonsense}, true, 2}, // all or none
		{1, false, []levelChange{down(1), down(1)}, false, 1},
		{2, false, []levelChange{down(1)}, false, 1},
		{1, false, []levelChange{down(2)}, true, 1},
		{2, false, []levelChange{{transactionVersion, 2, 3}}, true, 1},
		{2, false, []levelChange{{transactionVersion, 0, 3}}, false, 0},
		{0, false, []levelChange{up(1)}, false, 1},
		{2, false, []levelChange{up(2)}, false, 2},
	} {
		_, before := tg.level()
		resp := tg.setLevels(c.version, c.dryRun, c.changes...)
		what := fmt.Sprintf("step %d, version %d, dry run %v: %v", i, c.version, c.dryRun, c.changes)
		if c.refused {
			want(tg, what, resp.ErrorCode, kerr.InvalidUpdateVersion)
			if resp.ErrorMessage == nil || len(resp.Results) != 0 {
				tg.Fatalf("%s: message %v, %d rows", what, resp.ErrorMessage, len(resp.Results))
			}
		} else {
			want(tg, what, resp.ErrorCode, nil)
			if rows := len(resp.Results); rows != 0 && c.version == 2 || rows > len(c.changes) {
				tg.Fatalf("%s: %d rows", what, rows)
			}
		}
		if epoch := tg.awaitLevel(c.level); epoch < before {
			tg.Fatalf("%s: the epoch went from %d to %d", what, before, epoch)
		}
	}
}

// lateRequestsOfTheLastTransaction: every request of transaction N arrives again in the midst of N+1, on other
// connections, as often as there are transactions. Under version 2 none of it does anything.
func lateRequestsOfTheLastTransaction(tg *target) {
	topic := tg.topic("t", 1)
	group := tg.name("g")
	x := tg.txn(2, "x").init()
	var late []kmsg.Request
	keep := func(r kmsg.Request) kmsg.Request { late = append(late, r); return r }
	var visible []string
	committed := int64(-1)
	for n := range 6 {
		last := late
		late = nil
		replay := func() {
			for _, r := range last {
				again := tg.coordinator(1, x.id)
				switch r.(type) {
				case *kmsg.ProduceRequest:
					again = tg.leader(topic, 0)
				case *kmsg.TxnOffsetCommitRequest:
					again = tg.coordinator(0, group)
				}
				if _, err := again.try(r); err != nil {
					tg.Fatalf("the late %s: %v", kmsg.NameForKey(r.Key()), err)
				}
			}
		}
		for part := range 2 {
			value := fmt.Sprintf("%d/%d", n, part)
			b := x.data(topic, 0, value).bytes()
			x.retry("Produce", func() int16 {
				return x.leader(topic, 0).do(keep(x.request(topic, 0, b))).(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
			})
			x.seq[key(topic, 0)]++
			if n%3 != 2 {
				visible = append(visible, value)
			}
			replay()
		}
		offsets := keep(x.offsetsRequest(5, group, topic, int64(n)))
		x.retry("TxnOffsetCommit", func() int16 {
			return tg.coordinator(0, group).do(offsets).(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
		})
		replay()
		end := x.endRequest(n%3 != 2)
		x.retry("EndTxn", func() int16 { return x.took(x.coord.do(keep(end)).(*kmsg.EndTxnResponse)) })
		x.settled()
		if n%3 != 2 {
			committed = int64(n)
		}
		if at, _ := tg.stableOffset(group, topic); at != committed {
			tg.Fatalf("after transaction %d the group is at %d, want %d", n, at, committed)
		}
		if got := tg.values(topic, true); !slices.Equal(got, visible) {
			tg.Fatalf("after transaction %d a committed reader sees %q, want %q", n, got, visible)
		}
		if open := tg.open(topic, 0); open != 0 {
			tg.Fatalf("after transaction %d %d are open", n, open)
		}
	}
}

// versionIsThatOfTheRequest: at every level producers of both versions work side by side, each as it began. Apache Kafka 4.4
// answers EndTxn 5 and TxnOffsetCommit 5 with UNSUPPORTED_VERSION below level 2, so a downgrade ends its producers of
// version 2; here nobody notices.
func versionIsThatOfTheRequest(tg *target) {
	if tg.own == nil {
		tg.Skip("a deviation from Apache Kafka")
	}
	topic := tg.topic("t", 1)
	one, two := tg.txn(1, "one").init(), tg.txn(2, "two").init()
	var want []string
	for i, level := range []int16{2, 1, 0, 1, 2} {
		way := int8(2)
		if now, _ := tg.level(); level >= now {
			way = 1
		}
		for _, x := range []*txn{one, two} {
			x.produce(topic, fmt.Sprintf("open over change %d, version %d", i, x.version))
		}
		tg.setLevels(1, false, levelChange{transactionVersion, level, way})
		tg.awaitLevel(level)
		for _, x := range []*txn{one, two} {
			value := fmt.Sprintf("after change %d, version %d", i, x.version)
			x.produce(topic, value)
			before := x.epoch
			x.commit()
			x.settled()
			if bumped := x.epoch != before; bumped != (x.version == 2) {
				tg.Fatalf("level %d: version %d went from epoch %d to %d", level, x.version, before, x.epoch)
			}
		}
		want = append(want,
			fmt.Sprintf("open over change %d, version 1", i), fmt.Sprintf("open over change %d, version 2", i),
			fmt.Sprintf("after change %d, version 1", i), fmt.Sprintf("after change %d, version 2", i))
	}
	if got := tg.values(topic, true); !slices.Equal(got, want) {
		tg.Fatalf("a committed reader sees %q, want %q", got, want)
	}
}
