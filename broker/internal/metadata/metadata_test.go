package metadata

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/core/clock"
)

// memLog is a log whose durability the test decides.
type memLog struct {
	mu      sync.Mutex
	values  [][]byte
	durable int64 // offsets below are durable
	held    bool  // nothing becomes durable until release
	waiting []waiter
	failed  error
}

type waiter struct {
	offset int64
	fn     func(error)
}

func (l *memLog) Append(values [][]byte) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return 0, l.failed
	}
	l.values = append(l.values, values...)
	if !l.held {
		l.durable = int64(len(l.values))
	}
	return int64(len(l.values)) - 1, nil
}

func (l *memLog) Await(offset int64, fn func(error)) {
	l.mu.Lock()
	if l.durable > offset {
		l.mu.Unlock()
		fn(nil)
		return
	}
	l.waiting = append(l.waiting, waiter{offset, fn})
	l.mu.Unlock()
}

func (l *memLog) settle(err error) {
	l.mu.Lock()
	l.held, l.durable = false, int64(len(l.values))
	waiting := l.waiting
	l.waiting, l.failed = nil, err
	l.mu.Unlock()
	for _, w := range waiting {
		w.fn(err)
	}
}

func (l *memLog) Replay(fn func(int64, []byte) error) error {
	for i, v := range l.values {
		if err := fn(int64(i), v); err != nil {
			return err
		}
	}
	return nil
}

func (l *memLog) Close() error { return nil }

// recorder notes what the store asks of its follower.
type recorder struct {
	mu   sync.Mutex
	said []string
	fail error
}

func (r *recorder) Prepare(next *Image) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, "prepare "+strings.Join(next.Names(), ","))
	return r.fail
}

func (r *recorder) Retire(prev, next *Image) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf("retire %d->%d", len(prev.Names()), len(next.Names())))
}

func open(t *testing.T, l Log, f Follower) *Store {
	t.Helper()
	s, err := Open(l, "cluster", 1, f, clock.System(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func create(name string, n int32, config map[string]string) func(*Image) ([]Change, error) {
	return func(im *Image) ([]Change, error) {
		if im.Topic(name) != nil {
			return nil, errExists
		}
		return NewTopic(im.NodeID, name, NewID(), n, config), nil
	}
}

var errExists = errors.New("exists")

func TestChangesAreDecodedAsTheyWereEncoded(t *testing.T) {
	value := "604800000"
	for _, c := range []Change{
		TopicChange{Name: "orders", ID: NewID()},
		PartitionChange{TopicID: NewID(), Partition: 7, Leader: 1, LeaderEpoch: 3, Epoch: 9},
		ConfigChange{Topic: "orders", Name: "retention.ms", Value: &value},
		ConfigChange{Topic: "orders", Name: "retention.ms"},
		BrokerConfigChange{Broker: "1", Name: "log.retention.ms", Value: &value},
		BrokerConfigChange{Broker: AllBrokers, Name: "log.retention.ms"},
		RemoveTopicChange{ID: NewID()},
		FeatureChange{Name: TransactionVersion, Level: 2},
		ProducerIDsChange{NodeID: 1, Next: 2000},
	} {
		raw := encode(nil, c)
		got, err := decode(raw)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%#v came back as %#v, %v", c, got, err)
		}
		for n := range raw {
			if _, err := decode(raw[:n]); err == nil {
				t.Errorf("%T cut to %d of %d bytes was taken", c, n, len(raw))
			}
		}
	}
}

// TestKafkasBrokerConfig is the record of min.insync.replicas for all brokers as Apache Kafka 4.4.0 wrote it.
func TestKafkasBrokerConfig(t *testing.T) {
	raw, err := hex.DecodeString("0104000401146d696e2e696e73796e632e7265706c69636173023100")
	if err != nil {
		t.Fatal(err)
	}
	one := "1"
	want := BrokerConfigChange{Broker: AllBrokers, Name: "min.insync.replicas", Value: &one}
	if got, err := decode(raw); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, %v", got, err)
	}
	if got := encode(nil, want); !bytes.Equal(got, raw) {
		t.Errorf("written as %x, Kafka writes %x", got, raw)
	}
}

func TestUnknownRecordIsRefused(t *testing.T) {
	for _, raw := range [][]byte{{1, 77, 0, 0}, {2, 2, 0, 0}, {1, 2, 9, 0}, {}} {
		if c, err := decode(raw); err == nil {
			t.Errorf("%x was taken as %#v", raw, c)
		}
	}
	l := &memLog{values: [][]byte{{1, 77, 0, 0}}}
	if _, err := Open(l, "c", 1, &recorder{}, clock.System(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "offset 0") {
		t.Errorf("open of a log with an unknown record: %v", err)
	}
}

// describe is an image's whole content.
func describe(im *Image) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %v %d\n", im.Offset, im.Features, im.NextProducerID)
	for _, n := range im.Names() {
		t := im.Topic(n)
		fmt.Fprintf(&b, "%s %x %v %v %v same=%v\n", n, t.ID, t.Internal, t.Partitions, t.Config, im.TopicByID(t.ID) == t)
	}
	fmt.Fprintf(&b, "removed %d, brokers %v", len(im.removed), im.brokers)
	return b.String()
}

func TestLiveImageEqualsReplayedImage(t *testing.T) {
	const seed = 20261129
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	l := &memLog{}
	s := open(t, l, &recorder{})
	for step := range 300 {
		name := fmt.Sprintf("topic-%d", rng.IntN(12))
		_, err := s.ChangeNow(func(im *Image) ([]Change, error) {
			t := im.Topic(name)
			switch pick := rng.IntN(6); {
			case pick == 5:
				v := fmt.Sprint(step)
				return []Change{BrokerConfigChange{Broker: []string{AllBrokers, "1"}[step%2], Name: fmt.Sprint("log.", step%3), Value: []*string{&v, nil}[step/6%2]}}, nil
			case t == nil:
				return NewTopic(1, name, NewID(), rng.Int32N(4)+1, map[string]string{"retention.ms": fmt.Sprint(step)}), nil
			case pick == 0:
				return []Change{RemoveTopicChange{ID: t.ID}}, nil
			case pick == 1:
				return []Change{ConfigChange{Topic: name, Name: "retention.ms"}}, nil
			case pick == 2:
				v := fmt.Sprint(step)
				return []Change{ConfigChange{Topic: name, Name: "segment.ms", Value: &v}}, nil
			case pick == 3:
				return []Change{PartitionChange{TopicID: t.ID, Partition: int32(len(t.Partitions)), Leader: 1}}, nil
			}
			return []Change{ProducerIDsChange{NodeID: 1, Next: im.NextProducerID + producerIDBlock}}, nil
		})
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	again := open(t, l, &recorder{})
	if live, replayed := describe(s.Image()), describe(again.Image()); live != replayed {
		t.Errorf("live image:\n%s\nreplayed image:\n%s", live, replayed)
	}
}

func TestNothingIsPublishedBeforeItIsDurable(t *testing.T) {
	l := &memLog{held: true}
	rec := &recorder{}
	s := open(t, l, rec)
	answers := make(chan error, 2)
	s.Change(create("a", 1, nil), func(_ *Image, err error) { answers <- err })
	s.Change(create("a", 1, nil), func(_ *Image, err error) { answers <- err })
	if s.Image().Topic("a") != nil || len(answers) != 0 {
		t.Fatal("a topic was published or answered before its record is durable")
	}
	l.settle(nil)
	if first, second := <-answers, <-answers; first != nil || !errors.Is(second, errExists) {
		t.Errorf("answers in order: %v, %v; want none, then that it exists", first, second)
	}
	if s.Image().Topic("a") == nil {
		t.Error("the topic is not published")
	}
	want := []string{"prepare ", "prepare a", "retire 0->1"}
	if !reflect.DeepEqual(rec.said, want) {
		t.Errorf("the follower was asked %q, want %q", rec.said, want)
	}
}

func TestFailedSyncRefusesFurtherChanges(t *testing.T) {
	l := &memLog{held: true}
	s := open(t, l, &recorder{})
	answers := make(chan error, 1)
	s.Change(create("a", 1, nil), func(_ *Image, err error) { answers <- err })
	disk := errors.New("disk on fire")
	l.settle(disk)
	if err := <-answers; !errors.Is(err, disk) {
		t.Errorf("the change was answered with %v", err)
	}
	if _, err := s.ChangeNow(create("b", 1, nil)); !errors.Is(err, disk) {
		t.Errorf("a later change was answered with %v", err)
	}
	if n := len(s.Image().Names()); n != 0 {
		t.Errorf("%d topics are published", n)
	}
}

func TestConcurrentCreationsMakeOneTopic(t *testing.T) {
	s := open(t, &memLog{}, &recorder{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	created, refused := 0, 0
	for range 100 {
		wg.Go(func() {
			im, err := s.ChangeNow(create("a", 3, nil))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && im.Topic("a") != nil:
				created++
			case errors.Is(err, errExists):
				refused++
			}
		})
	}
	wg.Wait()
	if created != 1 || refused != 99 {
		t.Errorf("%d creations and %d refusals of 100", created, refused)
	}
}

func TestProducerIDsAreNeverGivenTwice(t *testing.T) {
	l := &memLog{}
	seen := map[int64]bool{}
	for life := range 3 {
		s := open(t, l, &recorder{})
		done := make(chan error, 1)
		s.ReserveProducerIDs(func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for got := 0; got < 1500; {
			id, err := s.NextProducerID()
			if errors.Is(err, ErrNoProducerID) {
				s.ReserveProducerIDs(func(err error) { done <- err })
				<-done
				continue
			}
			if seen[id] {
				t.Fatalf("id %d was given twice, the second time in life %d", id, life)
			}
			seen[id] = true
			got++
		}
	}
}

func TestTopicConfigValues(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"retention.ms", "-1", ""},
		{"retention.ms", "-2", "Value must be at least -1"},
		{"retention.ms", "abc", "Not a number of type LONG"},
		{"retention.ms", "9223372036854775808", "Not a number of type LONG"},
		{"segment.bytes", "1048575", "Value must be at least 1048576"},
		{"segment.bytes", "1048576", ""},
		{"min.insync.replicas", "0", "Value must be at least 1"},
		{"cleanup.policy", "compact,delete", ""},
		{"cleanup.policy", "shred", "String must be one of: compact, delete"},
		{"compression.type", "zstd", ""},
		{"compression.type", "zip", "String must be one of"},
		{"compression.type", "producer", ""},
		{"min.cleanable.dirty.ratio", "1.1", "Value must be no more than 1"},
		{"min.cleanable.dirty.ratio", "NaN", "Not a number of type DOUBLE"},
		{"preallocate", "yes", "true or false"},
		{"unclean.leader.election.enable", "true", "supports only false"},
		{"no.such.key", "1", "Unknown topic config name: no.such.key"},
	} {
		err := ValidateTopicConfig(c.name, c.value)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q", c.name, c.value, err, c.want)
		}
	}
}

func TestConfigTable(t *testing.T) {
	for i, k := range TopicConfigs() {
		if i > 0 && TopicConfigs()[i-1].Name >= k.Name {
			t.Errorf("%s is not in order", k.Name)
		}
		if err := ValidateTopicConfig(k.Name, k.Default); err != nil && k.Default != "" {
			t.Errorf("the default of %s is not valid: %v", k.Name, err)
		}
		if k.Doc == "" {
			t.Errorf("%s has no documentation", k.Name)
		}
	}
}

func TestTopicNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"": false, ".": false, "..": false, "a/b": false, "a b": false, "fünf": false,
		"a.b_c-D9": true, strings.Repeat("x", 249): true, strings.Repeat("x", 250): false,
	} {
		if err := ValidateName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	s := open(t, &memLog{}, &recorder{})
	for _, name := range []string{"a.b", "a-b", "ab", "x_y.z"} {
		if _, err := s.ChangeNow(create(name, 1, nil)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"a_b": "a.b", "x.y_z": "x_y.z", "a-b": "", "ab": "", "a.b": "", "a.c": ""} {
		if got := Collides(s.Image(), name); got != want {
			t.Errorf("%q collides with %q, want %q", name, got, want)
		}
	}
}
