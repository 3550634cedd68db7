package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/broker"
)

func newServer() *cobra.Command {
	var c broker.Config
	var level, profiles, metrics string
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a broker",
		Long: `Runs a broker until SIGTERM or SIGINT, which stop it cleanly.

When it is ready for clients, one line with the real address goes to standard
output; the log goes to standard error. Without --data-dir everything is kept in
memory and lost at the end.`,
		Example: `  millrace server --data-dir ./data --listen 127.0.0.1:9092
  millrace server --listen 127.0.0.1:0   # any free port, in memory`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var l slog.Level
			if err := l.UnmarshalText([]byte(level)); err != nil {
				return badUsage("--log-level is %q, must be debug, info, warn or error", level)
			}
			c.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l}))
			if err := c.Validate(); err != nil {
				return usageError{err}
			}
			if profiles != "" {
				stop, perr := startProfiles(profiles)
				if perr != nil {
					return perr
				}
				defer func() { err = errors.Join(err, stop()) }()
			}
			return serve(cmd, c, metrics)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Dir, "data-dir", "", "data folder; empty keeps everything in memory")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:9092", "address to listen on; port 0 takes a free one")
	f.StringVar(&c.Advertise, "advertise", "", "address that clients are told, if not the one they came in on")
	f.Int32Var(&c.NodeID, "node-id", 0, "id of this broker; 0 takes that of the data folder, or 1")
	f.Int32Var(&c.DefaultPartitions, "default-partitions", 1, "partitions of a topic whose creator does not say")
	f.BoolVar(&c.NoAutoCreate, "no-auto-create", false, "do not create missing topics when a client asks for them")
	f.StringVar(&c.Durability, "durability", "fsync", "what an acknowledgement waits for, where a topic does not say: fsync, interval or os")
	f.DurationVar(&c.FlushInterval, "flush-interval", 0, "how long a record may lie unsynced under interval (0: 1s) or os (0: for ever)")
	f.Int64Var(&c.ScrubBytesPerSecond, "scrub-bytes-per-second", 0, "what the search for damage in old segments reads (0: 8 MiB, below 0: off)")
	f.DurationVar(&c.ScrubInterval, "scrub-interval", 24*time.Hour, "how far apart two rounds of that search begin")
	f.DurationVar(&c.GroupInitialRebalanceDelay, "group-initial-rebalance-delay", 3*time.Second, "wait of an empty group for more members")
	f.DurationVar(&c.TransactionMaxTimeout, "transaction-max-timeout", 15*time.Minute, "longest timeout of a transaction")
	f.BoolVar(&c.TransactionTwoPhaseCommit, "transaction-two-phase-commit", false, "let producers take part in two-phase commits, with transactions that have no timeout")
	f.StringVar(&metrics, "metrics", "", "address for /metrics (Prometheus) and /healthz; port 0 takes a free one, empty serves none")
	f.StringVar(&level, "log-level", "info", "what to log: debug, info, warn or error")
	f.StringVar(&profiles, "profile-dir", "", "write pprof profiles of this process into a folder")
	if err := f.MarkHidden("profile-dir"); err != nil {
		panic(err) // a flag that was defined a line above
	}
	return cmd
}

// serve runs the broker until the command's context ends.
func serve(cmd *cobra.Command, c broker.Config, metrics string) error {
	// The broker gets a context of its own: when it stops, and with what error, is
	// decided here.
	b, err := broker.Start(context.WithoutCancel(cmd.Context()), c)
	if err != nil {
		return err
	}
	ready := struct {
		Ready   bool   `json:"ready"`
		Address string `json:"address"`
		DataDir string `json:"dataDir,omitempty"`
		Metrics string `json:"metrics,omitempty"`
	}{Ready: true, Address: b.Addr().String(), DataDir: c.Dir}
	closePage := func() error { return nil }
	text := "ready: listening on " + ready.Address
	if metrics != "" {
		page, err := serveMetrics(metrics, b)
		if err != nil {
			return errors.Join(err, b.Close())
		}
		closePage = page.close
		ready.Metrics = page.addr()
		text += ", metrics on " + ready.Metrics
	}
	if err := newPrinter(cmd).print(ready, "%s", text); err != nil {
		return errors.Join(fmt.Errorf("ready line: %w", err), closePage(), b.Close())
	}
	// What opening the partitions left behind goes back to the system: a broker that then has nothing to do would
	// otherwise keep it.
	settled := time.AfterFunc(time.Second, debug.FreeOSMemory)
	defer settled.Stop()
	<-cmd.Context().Done()
	return errors.Join(closePage(), b.Close())
}
