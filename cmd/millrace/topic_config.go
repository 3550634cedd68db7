package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newTopicAlter() *cobra.Command {
	var f alterFlags
	cmd := &cobra.Command{
		Use:   "alter TOPIC...",
		Short: "Change the configuration of topics while they are in use",
		Long: `Changes single settings; all others stay. The broker answers when the change is
durable and in effect. All changes of one topic are made together, or none.`,
		Example: `  millrace topic alter orders --set retention.ms=86400000 --delete segment.bytes
  millrace topic alter orders --append cleanup.policy=compact
  millrace topic alter metrics --set millrace.durability=interval --set flush.ms=200`,
		Args: atLeast(1, "the name of a topic"),
		RunE: func(cmd *cobra.Command, names []string) error {
			changes, err := f.changes(cmd)
			if err != nil {
				return err
			}
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				return alterTopics(ctx, cmd, adm, changes, names, f.dry)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func alterTopics(ctx context.Context, cmd *cobra.Command, adm *kadm.Client, changes []kadm.AlterConfig, names []string, dry bool) error {
	alter, did := adm.AlterTopicConfigs, "altered"
	if dry {
		alter, did = adm.ValidateAlterTopicConfigs, "would alter"
	}
	answers, err := alter(ctx, changes, names...)
	if err != nil {
		return err
	}
	p := newPrinter(cmd)
	var errs []error
	for _, name := range names {
		r, err := answers.On(name, nil)
		if err == nil {
			err = r.Err
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			errs = append(errs, noTopic(name, brokers(cmd)))
			continue
		}
		if err != nil {
			errs = append(errs, topicError("alter", name, err, r.ErrMessage))
			continue
		}
		row := struct {
			Topic   string `json:"topic"`
			Altered bool   `json:"altered"`
		}{name, !dry}
		if err := p.print(row, "%s %s", did, name); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// configRow is one setting of a topic.
type configRow struct {
	Topic  string `json:"topic"`
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

func newTopicConfig() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "config TOPIC...",
		Short: "Show the configuration of topics, and where each value comes from",
		Long: `Shows the settings that are not the defaults, one to a line: name, value, and
where it comes from, which is the topic itself, a setting of the brokers, or what
the broker was started with.`,
		Example: `  millrace topic config orders
  millrace topic config orders --all -o json`,
		Args: atLeast(1, "the name of a topic"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				if _, err := existing(ctx, adm, brokers(cmd), names); err != nil {
					return err
				}
				configs, err := adm.DescribeTopicConfigs(ctx, names...)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, name := range names {
					rc, err := configs.On(name, nil)
					if err == nil {
						err = rc.Err
					}
					if err != nil {
						return topicError("describe configuration of", name, err, rc.ErrMessage)
					}
					if err := printConfig(p, name, rc.Configs, all, len(names) > 1); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show the defaults too")
	return cmd
}

func printConfig(p printer, topic string, configs []kadm.Config, all, several bool) error {
	slices.SortFunc(configs, func(a, b kadm.Config) int { return strings.Compare(a.Key, b.Key) })
	for _, kv := range configs {
		if kv.Source == kmsg.ConfigSourceDefaultConfig && !all {
			continue
		}
		row := configRow{topic, kv.Key, kv.MaybeValue(), sourceName(kv.Source)}
		head := ""
		if several {
			head = topic + "\t"
		}
		if err := p.print(row, "%s%s=%s\t%s", head, row.Name, row.Value, row.Source); err != nil {
			return err
		}
	}
	return nil
}

// sourceName is where a value comes from, in words.
func sourceName(s kmsg.ConfigSource) string {
	switch s {
	case kmsg.ConfigSourceDynamicTopicConfig:
		return "topic"
	case kmsg.ConfigSourceDynamicBrokerConfig:
		return "broker"
	case kmsg.ConfigSourceDynamicDefaultBrokerConfig:
		return "all brokers"
	case kmsg.ConfigSourceStaticBrokerConfig:
		return "broker start"
	case kmsg.ConfigSourceDefaultConfig:
		return "default"
	}
	return fmt.Sprint(s)
}
