package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newFeatures() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "features",
		Short: "Show and change the levels of a cluster's features",
		Long: `Shows which features a cluster supports and at which level they are finalized, and
changes levels while clients work (KIP-584).

transaction.version is the one that clients ask for: at 2 they use transactions that
a late request can not harm (KIP-890), below that they use the older kind. Producers
of both kinds work side by side; one that is connected goes on as it does.`,
		Example: `  millrace features list
  millrace features downgrade transaction.version=1
  millrace features upgrade transaction.version=2`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addClientFlags(cmd)
	cmd.AddCommand(newFeaturesList(), newFeaturesUpgrade(), newFeaturesDowngrade())
	return cmd
}

// shownFeature is one row of features list.
type shownFeature struct {
	Feature      string `json:"feature"`
	SupportedMin int16  `json:"supportedMin"`
	SupportedMax int16  `json:"supportedMax"`
	Level        int16  `json:"level"`
	Epoch        int64  `json:"epoch"`
}

func newFeaturesList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List features with the levels that are supported and the one that is finalized",
		Example: "  millrace features list",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withClient(cmd, func(ctx context.Context, cl *kgo.Client, _ *kadm.Client) error {
				rows, err := listFeatures(ctx, cl)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, r := range rows {
					if err := p.print(r, "%s\tlevel %d of %d–%d\tepoch %d", r.Feature, r.Level, r.SupportedMin, r.SupportedMax, r.Epoch); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// listFeatures asks one broker; all know the same, a moment apart.
func listFeatures(ctx context.Context, cl *kgo.Client) ([]shownFeature, error) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "millrace", "1"
	resp, err := req.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, fmt.Errorf("list features: %w", explained(err, ""))
	}
	var rows []shownFeature
	for _, f := range resp.SupportedFeatures {
		row := shownFeature{f.Name, f.MinVersion, f.MaxVersion, 0, resp.FinalizedFeaturesEpoch}
		for _, at := range resp.FinalizedFeatures {
			if at.Name == f.Name {
				row.Level = at.MaxVersionLevel
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b shownFeature) int { return strings.Compare(a.Feature, b.Feature) })
	return rows, nil
}

// Ways to change a level, as UpdateFeatures names them.
const (
	wayUp         = 1
	wayDown       = 2
	wayDownUnsafe = 3
)

func newFeaturesUpgrade() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:     "upgrade FEATURE=LEVEL...",
		Short:   "Raise the levels of features",
		Example: "  millrace features upgrade transaction.version=2",
		Args:    atLeast(1, "FEATURE=LEVEL"),
		RunE:    func(cmd *cobra.Command, args []string) error { return changeFeatures(cmd, args, wayUp, dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say whether it could be done")
	return cmd
}

func newFeaturesDowngrade() *cobra.Command {
	var dryRun, unsafe bool
	cmd := &cobra.Command{
		Use:     "downgrade FEATURE=LEVEL...",
		Short:   "Lower the levels of features; level 0 takes a feature away",
		Example: "  millrace features downgrade transaction.version=1",
		Args:    atLeast(1, "FEATURE=LEVEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if unsafe {
				return changeFeatures(cmd, args, wayDownUnsafe, dryRun)
			}
			return changeFeatures(cmd, args, wayDown, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say whether it could be done")
	cmd.Flags().BoolVar(&unsafe, "unsafe", false, "also where metadata would be lost, which other brokers distinguish")
	return cmd
}

// changedFeature is one row of features upgrade and downgrade.
type changedFeature struct {
	Feature string `json:"feature"`
	Level   int16  `json:"level"`
	DryRun  bool   `json:"dryRun"`
}

// changeFeatures changes all or none.
func changeFeatures(cmd *cobra.Command, args []string, way int8, dryRun bool) error {
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.ValidateOnly = dryRun
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		level, err := strconv.ParseInt(text, 10, 16)
		if !ok || name == "" || err != nil {
			return badUsage("%q is not of the form FEATURE=LEVEL", arg)
		}
		u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		u.Feature, u.MaxVersionLevel, u.UpgradeType = name, int16(level), way
		req.FeatureUpdates = append(req.FeatureUpdates, u)
	}
	return withClient(cmd, func(ctx context.Context, cl *kgo.Client, _ *kadm.Client) error {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return fmt.Errorf("change features: %w", err)
		}
		if resp.Version < 1 {
			return fmt.Errorf("change features: the broker speaks version %d of UpdateFeatures, 1 is needed", resp.Version)
		}
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			text := ""
			if resp.ErrorMessage != nil {
				text = *resp.ErrorMessage
			}
			return fmt.Errorf("change features: %w", explained(err, text))
		}
		for _, r := range resp.Results {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				return fmt.Errorf("change feature %s: %w", r.Feature, explained(err, ""))
			}
		}
		p := newPrinter(cmd)
		for _, u := range req.FeatureUpdates {
			verb := "is at"
			if dryRun {
				verb = "could be set to"
			}
			if err := p.print(changedFeature{u.Feature, u.MaxVersionLevel, dryRun}, "%s %s level %d", u.Feature, verb, u.MaxVersionLevel); err != nil {
				return err
			}
		}
		return nil
	})
}
