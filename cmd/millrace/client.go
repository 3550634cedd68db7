package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// brokersEnv names the brokers where --brokers does not.
const brokersEnv = "MILLRACE_BROKERS"

// defaultBrokers is where millrace server listens by default.
const defaultBrokers = "127.0.0.1:9092"

// addClientFlags adds what every command needs that talks to a broker.
func addClientFlags(cmd *cobra.Command) {
	seeds := os.Getenv(brokersEnv)
	if seeds == "" {
		seeds = defaultBrokers
	}
	cmd.PersistentFlags().StringP("brokers", "b", seeds, "comma-separated host:port of the cluster ($"+brokersEnv+")")
	cmd.PersistentFlags().Duration("timeout", 10*time.Second, "how long to wait for the brokers' answers")
}

// seedList is --brokers as a list.
func seedList(cmd *cobra.Command) []string {
	var seeds []string
	for _, s := range strings.Split(brokers(cmd), ",") {
		if s = strings.TrimSpace(s); s != "" {
			seeds = append(seeds, s)
		}
	}
	return seeds
}

// newClient connects to the cluster that the flags name.
func newClient(cmd *cobra.Command, opts ...kgo.Opt) (*kgo.Client, error) {
	seeds := seedList(cmd)
	if len(seeds) == 0 {
		return nil, badUsage("--brokers names no broker")
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(seeds...), kgo.ClientID("millrace")}, opts...)...)
	if err != nil {
		return nil, usageError{fmt.Errorf("client options: %w", err)}
	}
	return cl, nil
}

// within runs f within --timeout; a cluster that does not answer in time, or can
// not be reached at all, is named in the error.
func within(cmd *cobra.Command, f func(context.Context) error) error {
	d, err := timeout(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), d)
	defer cancel()
	err = f(ctx)
	if errors.Is(err, context.DeadlineExceeded) && cmd.Context().Err() == nil {
		return fmt.Errorf("no answer from %s within %v: %w", brokers(cmd), d, err)
	}
	return err
}

// reach asks the cluster for a sign of life. Without it a client would dial a
// wrong address for ever.
func reach(cmd *cobra.Command, cl *kgo.Client) error {
	return within(cmd, func(ctx context.Context) error {
		if err := cl.Ping(ctx); err != nil {
			return fmt.Errorf("no broker can be reached at %s: %w", brokers(cmd), err)
		}
		return nil
	})
}

// brokers is the value of --brokers.
func brokers(cmd *cobra.Command) string { return cmd.Flag("brokers").Value.String() }

// explained is an error of the protocol with the broker's own words, if it sent
// any, in place of the general ones.
func explained(err error, message string) error {
	var code *kerr.Error
	if !errors.As(err, &code) {
		return err
	}
	if message == "" {
		message = code.Description
	}
	return fmt.Errorf("%s (%w)", strings.TrimSuffix(message, "."), refused{code})
}

// refused is a protocol error that prints as its name only.
type refused struct{ code *kerr.Error }

func (r refused) Error() string { return r.code.Message }
func (r refused) Unwrap() error { return r.code }

// timeout is the value of --timeout.
func timeout(cmd *cobra.Command) (time.Duration, error) {
	d, err := time.ParseDuration(cmd.Flag("timeout").Value.String())
	if err != nil || d <= 0 {
		return 0, badUsage("--timeout is %s, must be above 0", cmd.Flag("timeout").Value)
	}
	return d, nil
}
