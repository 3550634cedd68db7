package workload_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/txn/history/workload"
)

// TestLevelsChangeUnderLoad: transaction.version goes down and up again, over and over, while producers of both versions
// work, and come and go. Nothing is lost, and nobody gets stuck.
func TestLevelsChangeUnderLoad(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	set := func(level int16) {
		t.Helper()
		req := kmsg.NewPtrUpdateFeaturesRequest()
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		u.Feature, u.MaxVersionLevel, u.UpgradeType = "transaction.version", level, 2
		if level == 2 {
			u.UpgradeType = 1
		}
		req.FeatureUpdates = append(req.FeatureUpdates, u)
		resp, err := req.RequestWith(t.Context(), cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil {
			t.Fatalf("level %d: %v", level, err)
		}
	}
	w := start(t, workload.Options{Seeds: b.Seeds(), Dial: b.Dial, Seed: seedtest.New(t)}, func(workload.Progress) bool { return false })
	var now workload.Progress
	for changes := 0; changes < 12 || !enough(now); changes++ {
		set([]int16{1, 0, 2}[changes%3])
		for range 3 { // tenths of a second under load
			select {
			case now = <-w.tick:
			case err := <-w.done:
				t.Fatalf("the workload ended early: %v", err)
			}
		}
	}
	w.stop()
	events := w.wait(t)
	busy(t, verdict(t, events), events)
}
