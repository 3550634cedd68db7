package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newBroker() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "broker",
		Short:   "Show and change what all topics take over from the brokers",
		Example: "  millrace broker config",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addClientFlags(cmd)
	cmd.AddCommand(newBrokerAlter(), newBrokerConfig())
	return cmd
}

// nodeFlag is the flag that names one broker in place of all.
func nodeFlag(cmd *cobra.Command, node *int32) {
	cmd.Flags().Int32Var(node, "node", -1, "id of one broker; without it all brokers")
}

func nodes(node int32) []int32 {
	if node < 0 {
		return nil
	}
	return []int32{node}
}

func newBrokerAlter() *cobra.Command {
	var f alterFlags
	var node int32
	cmd := &cobra.Command{
		Use:   "alter",
		Short: "Change settings of the brokers while they run",
		Long: `Changes settings that topics take over where they do not say themselves, under
their names at the broker's level: log.retention.ms for retention.ms. Without
--node they hold for all brokers.`,
		Example: `  millrace broker alter --set log.retention.ms=86400000
  millrace broker alter --set millrace.durability=interval --set log.flush.interval.ms=200`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			changes, err := f.changes(cmd)
			if err != nil {
				return err
			}
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				alter, did := adm.AlterBrokerConfigs, "altered"
				if f.dry {
					alter, did = adm.ValidateAlterBrokerConfigs, "would alter"
				}
				answers, err := alter(ctx, changes, nodes(node)...)
				if err != nil {
					return err
				}
				what := "all brokers"
				if node >= 0 {
					what = fmt.Sprint("broker ", node)
				}
				for _, r := range answers {
					if r.Err != nil {
						return fmt.Errorf("alter %s: %w", what, explained(r.Err, r.ErrMessage))
					}
				}
				row := struct {
					Altered bool `json:"altered"`
				}{!f.dry}
				return newPrinter(cmd).print(row, "%s %s", did, what)
			})
		},
	}
	f.add(cmd)
	nodeFlag(cmd, &node)
	return cmd
}

func newBrokerConfig() *cobra.Command {
	var node int32
	var all bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show settings of the brokers, and where each value comes from",
		Long: `Shows what was set for all brokers while they run; with --node everything that
is not a default of that broker, and with --all the defaults too.`,
		Example: `  millrace broker config
  millrace broker config --node 1 --all`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && node < 0 {
				return badUsage("--all needs --node: what is set for all brokers has no defaults")
			}
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				configs, err := adm.DescribeBrokerConfigs(ctx, nodes(node)...)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, rc := range configs {
					if rc.Err != nil {
						return fmt.Errorf("describe configuration of brokers: %w", explained(rc.Err, rc.ErrMessage))
					}
					if err := printBrokerConfig(p, rc.Configs, all); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	nodeFlag(cmd, &node)
	cmd.Flags().BoolVar(&all, "all", false, "show the defaults too")
	return cmd
}

func printBrokerConfig(p printer, configs []kadm.Config, all bool) error {
	slices.SortFunc(configs, func(a, b kadm.Config) int { return strings.Compare(a.Key, b.Key) })
	for _, kv := range configs {
		if kv.Source == kmsg.ConfigSourceDefaultConfig && !all {
			continue
		}
		row := struct {
			Name   string `json:"name"`
			Value  string `json:"value"`
			Source string `json:"source"`
		}{kv.Key, kv.MaybeValue(), sourceName(kv.Source)}
		if err := p.print(row, "%s=%s\t%s", row.Name, row.Value, row.Source); err != nil {
			return err
		}
	}
	return nil
}
