package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
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

// newClient connects to the cluster that the flags name.
func newClient(cmd *cobra.Command, opts ...kgo.Opt) (*kgo.Client, error) {
	var seeds []string
	for _, s := range strings.Split(cmd.Flag("brokers").Value.String(), ",") {
		if s = strings.TrimSpace(s); s != "" {
			seeds = append(seeds, s)
		}
	}
	if len(seeds) == 0 {
		return nil, badUsage("--brokers names no broker")
	}
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(seeds...), kgo.ClientID("millrace")}, opts...)...)
	if err != nil {
		return nil, usageError{fmt.Errorf("client options: %w", err)}
	}
	return cl, nil
}

// timeout is the value of --timeout.
func timeout(cmd *cobra.Command) (time.Duration, error) {
	d, err := time.ParseDuration(cmd.Flag("timeout").Value.String())
	if err != nil || d <= 0 {
		return 0, badUsage("--timeout is %s, must be above 0", cmd.Flag("timeout").Value)
	}
	return d, nil
}
