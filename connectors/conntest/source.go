package conntest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
)

// Upstream is a store that a source reads from.
type Upstream interface {
	// New returns the source as one more process would open it.
	New() (connectors.Source, error)
	// Want returns the values of all records that belong into the topic.
	Want() []string
}

// SourceKit describes a source to the conformance kit. The source must come to
// an end, and take at least five units to get there; no two of its records have
// the same value.
type SourceKit struct {
	// Cluster is any cluster of the Kafka protocol. Required.
	Cluster connectors.Cluster
	// Open makes an upstream whose records go to the given topic. It is called
	// once per case.
	Open func(tb testing.TB, topic string) Upstream
}

// sourcePoints are in the order in which a unit passes them.
var sourcePoints = []string{
	runner.PointClaimed, runner.PointOpened, runner.PointRead, runner.PointSent, runner.PointDurable, runner.PointUpstream,
}

// RunSource runs every case as a subtest: plain, killed at each point, with a
// lost reply at each point, and frozen at each point while a successor reads to
// the end. After each, the topic must hold every record once.
func RunSource(t *testing.T, k SourceKit) {
	if k.Cluster == nil || k.Open == nil {
		t.Fatal("conntest: SourceKit.Cluster and Open are required")
	}
	run := func(name string, f func(s *sourceEnv) error) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := newSourceEnv(t, k, safe(name))
			if err == nil {
				err = f(s)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	run("source/plain", sourcePlain)
	for _, p := range sourcePoints {
		run("source/crash/"+p, func(s *sourceEnv) error { return sourceCrash(s, p) })
		run("source/lost-reply/"+p, func(s *sourceEnv) error { return sourceLostReply(s, p) })
		run("source/zombie/"+p, func(s *sourceEnv) error { return sourceZombie(s, p) })
	}
}

// sourceEnv is what one case works with.
type sourceEnv struct {
	ctx       context.Context
	kit       SourceKit
	topic     string
	positions string
	up        Upstream
	admin     *kadm.Client
}

func newSourceEnv(t *testing.T, k SourceKit, name string) (*sourceEnv, error) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	id := name + "-" + hex.EncodeToString(b[:])
	s := &sourceEnv{ctx: ctx, kit: k, topic: "conntest-" + id, positions: "positions-" + id}
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Cluster.Seeds()...), kgo.Dialer(k.Cluster.Dial))
	if err != nil {
		return nil, err
	}
	t.Cleanup(client.Close)
	s.admin = kadm.NewClient(client)
	if _, err := s.admin.CreateTopic(ctx, partitions, -1, nil, s.topic); err != nil {
		return nil, fmt.Errorf("create topic: %w", err)
	}
	s.up = k.Open(t, s.topic)
	return s, nil
}

// run runs the source in a process of its own; at is called at its points.
func (s *sourceEnv) run(at func(p *network, point string, n int) error) (*runner.Source, error) {
	net := newNetwork(s.kit.Cluster)
	src, err := s.up.New()
	if err != nil {
		return nil, err
	}
	r, err := runner.NewSource(runner.SourceOptions{
		Cluster: net, Source: src, PositionTopic: s.positions,
		RetryMin: 5 * time.Millisecond, RetryMax: 200 * time.Millisecond, StopTimeout: time.Second,
	})
	if err != nil {
		return nil, err
	}
	seen := map[string]int{} // one part, so one goroutine
	ctx := connectors.WithPoints(s.ctx, func(_ context.Context, point string) error {
		seen[point]++
		if at == nil {
			return nil
		}
		return at(net, point, seen[point])
	})
	return r, r.Run(ctx)
}

// exact reads the topic as a committed reader sees it and compares. It reads up
// to the high watermark: a commit is answered before its markers are written,
// so the last stable offset may lag behind.
func (s *sourceEnv) exact() error {
	ends, err := s.admin.ListEndOffsets(s.ctx, s.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("end of topic: %w", err)
	}
	from := map[string]map[int32]kgo.Offset{s.topic: {}}
	left := map[int32]int64{}
	ends.Each(func(l kadm.ListedOffset) {
		if l.Offset > 0 {
			from[l.Topic][l.Partition], left[l.Partition] = kgo.NewOffset().At(0), l.Offset
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.kit.Cluster.Seeds()...), kgo.Dialer(s.kit.Cluster.Dial),
		kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer cl.Close()
	count := map[string]int{}
	for len(left) > 0 {
		fs := cl.PollFetches(s.ctx)
		if s.ctx.Err() != nil {
			return fmt.Errorf("read topic: %w", s.ctx.Err())
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				count[string(r.Value)]++
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	for _, v := range s.up.Want() {
		count[v]--
	}
	for v, n := range count {
		if n != 0 {
			return fmt.Errorf("record %.60q is there %+d times too often", v, n)
		}
	}
	return nil
}

func sourcePlain(s *sourceEnv) error {
	if _, err := s.run(nil); err != nil {
		return err
	}
	if err := s.exact(); err != nil {
		return err
	}
	again, err := s.run(nil)
	if err != nil {
		return fmt.Errorf("a second run: %w", err)
	}
	if n := again.Status().Tasks[0].Records; n != 0 {
		return fmt.Errorf("a second run has sent %d records", n)
	}
	return s.exact()
}

// passage is which passage of a point a fault waits for: that of the third unit,
// or the only one of those at the start.
func passage(point string) int {
	if point == runner.PointClaimed || point == runner.PointOpened {
		return 1
	}
	return 3
}

func sourceCrash(s *sourceEnv, point string) error {
	killed := false
	_, err := s.run(func(net *network, p string, n int) error {
		if p == point && n == passage(point) {
			killed = true
			net.cutOff()
			panic(crashed{point})
		}
		return nil
	})
	if !killed {
		return fmt.Errorf("the source never came to point %s: %w", point, errors.Join(err, errTooShort))
	}
	if _, err := s.run(nil); err != nil {
		return fmt.Errorf("the next process: %w", err)
	}
	return s.exact()
}

var errTooShort = errors.New("it must take at least five units")

func sourceLostReply(s *sourceEnv, point string) error {
	lost := fmt.Errorf("%w: the kit has lost the reply", connectors.ErrUnknownOutcome)
	if _, err := s.run(func(_ *network, p string, n int) error {
		if p == point && n == passage(point) {
			return lost
		}
		return nil
	}); err != nil {
		return err
	}
	return s.exact()
}

func sourceZombie(s *sourceEnv, point string) error {
	ice := &freezer{reached: make(chan struct{}), thawed: make(chan struct{})}
	result := make(chan error, 1)
	go func() {
		_, err := s.run(func(_ *network, p string, n int) error {
			if p == point && n == passage(point) {
				close(ice.reached)
				<-ice.thawed
			}
			return nil
		})
		result <- err
	}()
	select {
	case <-ice.reached:
	case err := <-result:
		close(ice.thawed)
		return fmt.Errorf("the source never came to point %s: %w", point, errors.Join(err, errTooShort))
	}
	if _, err := s.run(nil); err != nil {
		close(ice.thawed)
		return fmt.Errorf("the successor of a process frozen at %s: %w", point, err)
	}
	err := s.exact()
	close(ice.thawed)
	zombie := <-result
	switch {
	case err != nil:
		return fmt.Errorf("before the zombie wakes: %w", err)
	case zombie == nil && point == runner.PointClaimed:
		// It reads the position only now, and sees that nothing is left to do.
	case !errors.Is(zombie, connectors.ErrFenced):
		return fmt.Errorf("the zombie's Run: got error %v, want one that matches: %w", zombie, connectors.ErrFenced)
	}
	return s.exact()
}
