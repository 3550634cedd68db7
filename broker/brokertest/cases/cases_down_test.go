package cases

import (
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var downCases = []testCase{
	{"F19", "redpanda#8688, #4976", restart, fetchWhileThePartitionStops},
	{"S06", "KAFKA-10101, KAFKA-10471", crash, powerCutsInARow},
}

// fetchWhileThePartitionStops fetches at the end of a log, waiting there, through clean restarts: whatever is told, nobody may take it
// for a reason to begin at another offset.
func fetchWhileThePartitionStops(tg *target) {
	topic := tg.topic("t", 1)
	const n = 20
	w := tg.leader(topic, 0)
	for range n {
		want(tg, "Produce", tg.produce(w, topic, plain("v")).ErrorCode, nil)
	}
	var over atomic.Bool
	var answers atomic.Int32
	done := make(chan string, 1)
	go func() {
		for !over.Load() {
			c, err := tg.cluster.Dial(tg.Context(), "tcp", tg.cluster.Seeds()[0])
			if err != nil {
				continue // nobody listens at the moment
			}
			w := &wire{t: tg, conn: c}
			for !over.Load() {
				resp, err := w.try(fetchRequest(topic, n, false, 1<<20, 50, 1))
				if err != nil {
					break
				}
				answers.Add(1)
				switch row := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]; row.ErrorCode {
				case 0, kerr.NotLeaderForPartition.Code, kerr.UnknownTopicOrPartition.Code, kerr.KafkaStorageError.Code,
					kerr.LeaderNotAvailable.Code, kerr.ReplicaNotAvailable.Code:
					if len(row.RecordBatches) > 0 {
						done <- fmt.Sprintf("%d bytes at the end of the log", len(row.RecordBatches))
						return
					}
				default:
					done <- code(row.ErrorCode)
					return
				}
			}
			w.close()
		}
		done <- ""
	}()
	for range 5 {
		before := answers.Load()
		tg.eventually("fetches go on", func() (bool, string) { return answers.Load() > before || len(done) > 0, "no answer" })
		tg.hangUp()
		tg.own.Restart(tg)
	}
	over.Store(true)
	if said := <-done; said != "" {
		tg.Fatalf("a fetch was told %s", said)
	}
	if end := tg.end(topic); end != n {
		tg.Fatalf("the log ends at %d, it had %d records", end, n)
	}
}

// powerCutsInARow: what the first cut has left to be recovered is there after the next ones too, which come when that was hardly done.
// That the power fails in the middle of a recovery is crash.TestCrashMatrix's and crash.TestPowerCutAtEveryOperation's.
func powerCutsInARow(tg *target) {
	topic := tg.topic("t", 1, "segment.bytes", "1048576")
	w := tg.leader(topic, 0)
	const n = 30
	for i := range n {
		want(tg, "Produce", tg.produce(w, topic, plain(fmt.Sprint(i))).ErrorCode, nil)
	}
	tg.hangUp()
	for seed := range uint64(8) {
		tg.own.Crash(tg, seed)
	}
	raw := tg.fetch(tg.leader(topic, 0), topic, 0, false, 1<<20).RecordBatches
	var got []string
	for _, b := range decode(raw) {
		got = append(got, b.values...)
	}
	if len(got) != n || got[0] != "0" || got[n-1] != fmt.Sprint(n-1) {
		tg.Fatalf("of %d acknowledged records there are %d: %q", n, len(got), got)
	}
}
