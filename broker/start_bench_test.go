package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
)

func quiet(dir string) broker.Config {
	return broker.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}
}

func benchStart(b *testing.B, dir func() string) {
	for b.Loop() {
		br, err := broker.Start(context.Background(), quiet(dir()))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := br.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkStartNew is a broker on an empty folder.
func BenchmarkStartNew(b *testing.B) {
	root, n := b.TempDir(), 0
	benchStart(b, func() string { n++; return fmt.Sprintf("%s/%d", root, n) })
}

// BenchmarkStartInMemory is a broker without a folder.
func BenchmarkStartInMemory(b *testing.B) { benchStart(b, func() string { return "" }) }

// BenchmarkStartAgain is a broker on a folder with topics, stopped cleanly.
func BenchmarkStartAgain(b *testing.B) {
	for _, topics := range []int{0, 100, 1000} {
		b.Run(fmt.Sprint(topics), func(b *testing.B) {
			dir := b.TempDir()
			br, err := broker.Start(context.Background(), quiet(dir))
			if err != nil {
				b.Fatal(err)
			}
			cl, err := kgo.NewClient(kgo.SeedBrokers(br.Seeds()...), kgo.Dialer(br.Dial))
			if err != nil {
				b.Fatal(err)
			}
			var names []string
			for i := range topics {
				names = append(names, fmt.Sprintf("topic-%d", i))
			}
			if topics > 0 {
				if made, err := kadm.NewClient(cl).CreateTopics(context.Background(), 1, 1, nil, names...); err != nil || made.Error() != nil {
					b.Fatal(err, made.Error())
				}
			}
			cl.Close()
			if err := br.Close(); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			benchStart(b, func() string { return dir })
		})
	}
}
