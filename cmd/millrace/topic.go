package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func newTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "topic",
		Short:   "Create, list, describe, alter and delete topics",
		Example: "  millrace topic list",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addClientFlags(cmd)
	cmd.AddCommand(newTopicCreate(), newTopicList(), newTopicDescribe(), newTopicAlter(), newTopicConfig(), newTopicDelete())
	return cmd
}

func newTopicCreate() *cobra.Command {
	var partitions int32
	var replication int16
	var config []string
	cmd := &cobra.Command{
		Use:     "create TOPIC...",
		Short:   "Create topics",
		Example: "  millrace topic create orders --partitions 3 --config cleanup.policy=compact",
		Args:    atLeast(1, "the name of a topic"),
		RunE: func(cmd *cobra.Command, names []string) error {
			configs := map[string]*string{}
			for _, kv := range config {
				k, v, ok := strings.Cut(kv, "=")
				if !ok || k == "" {
					return badUsage("--config is %q, must be key=value", kv)
				}
				configs[k] = &v
			}
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				made, err := adm.CreateTopics(ctx, partitions, replication, configs, names...)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				var errs []error
				for _, name := range names {
					t := made[name]
					if t.Err != nil {
						errs = append(errs, topicError("create", name, t.Err, t.ErrMessage))
						continue
					}
					n := t.NumPartitions
					if err := p.print(createdTopic{name, n}, "created %s", name); err != nil {
						return err
					}
				}
				return errors.Join(errs...)
			})
		},
	}
	cmd.Flags().Int32Var(&partitions, "partitions", -1, "number of partitions; -1 is the broker's default")
	cmd.Flags().Int16Var(&replication, "replication-factor", -1, "replicas of each partition; -1 is the broker's default")
	cmd.Flags().StringArrayVar(&config, "config", nil, "topic configuration as key=value; may be repeated")
	return cmd
}

type createdTopic struct {
	Topic      string `json:"topic"`
	Partitions int32  `json:"partitions"`
}

func newTopicList() *cobra.Command {
	var internal bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List topics",
		Example: "  millrace topic list --output json",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				list := adm.ListTopics
				if internal {
					list = adm.ListTopicsWithInternal
				}
				topics, err := list(ctx)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, t := range topics.Sorted() {
					if err := p.print(createdTopic{t.Topic, int32(len(t.Partitions))}, "%s", t.Topic); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "list the broker's own topics too")
	return cmd
}

func newTopicDelete() *cobra.Command {
	return &cobra.Command{
		Use:     "delete TOPIC...",
		Short:   "Delete topics with all their records",
		Example: "  millrace topic delete orders",
		Args:    atLeast(1, "the name of a topic"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				gone, err := adm.DeleteTopics(ctx, names...)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				var errs []error
				for _, name := range names {
					t := gone[name]
					if errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
						errs = append(errs, noTopic(name, brokers(cmd)))
						continue
					}
					if t.Err != nil {
						errs = append(errs, topicError("delete", name, t.Err, t.ErrMessage))
						continue
					}
					row := struct {
						Topic   string `json:"topic"`
						Deleted bool   `json:"deleted"`
					}{name, true}
					if err := p.print(row, "deleted %s", name); err != nil {
						return err
					}
				}
				return errors.Join(errs...)
			})
		},
	}
}

// describedTopic is one topic in full.
type describedTopic struct {
	Topic      string               `json:"topic"`
	ID         string               `json:"id"`
	Internal   bool                 `json:"internal"`
	Partitions []describedPartition `json:"partitions"`
	Config     map[string]string    `json:"config"`
}

type describedPartition struct {
	Partition   int32   `json:"partition"`
	Leader      int32   `json:"leader"`
	LeaderEpoch int32   `json:"leaderEpoch"`
	Replicas    []int32 `json:"replicas"`
	InSync      []int32 `json:"inSync"`
	Start       int64   `json:"start"`
	End         int64   `json:"end"`
	Error       string  `json:"error,omitempty"` // why start and end are not known
}

func newTopicDescribe() *cobra.Command {
	return &cobra.Command{
		Use:     "describe TOPIC...",
		Short:   "Show partitions, offsets and the configuration that differs from the defaults",
		Example: "  millrace topic describe orders",
		Args:    atLeast(1, "the name of a topic"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return withAdmin(cmd, func(ctx context.Context, adm *kadm.Client) error {
				topics, err := describeTopics(ctx, adm, brokers(cmd), names)
				if err != nil {
					return err
				}
				p := newPrinter(cmd)
				for _, t := range topics {
					if err := p.print(t, "%s", t.text()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func describeTopics(ctx context.Context, adm *kadm.Client, brokers string, names []string) ([]describedTopic, error) {
	topics, err := existing(ctx, adm, brokers, names)
	if err != nil {
		return nil, err
	}
	starts, err := adm.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, err
	}
	ends, err := adm.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, err
	}
	configs, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, err
	}
	var out []describedTopic
	for _, name := range names {
		t := topics[name]
		d := describedTopic{Topic: name, ID: topicID(t.ID), Internal: t.IsInternal, Config: map[string]string{}}
		for _, p := range t.Partitions.Sorted() {
			start, _ := starts.Lookup(name, p.Partition)
			end, _ := ends.Lookup(name, p.Partition)
			row := describedPartition{
				Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
				Replicas: p.Replicas, InSync: p.ISR, Start: start.Offset, End: end.Offset,
			}
			if err := cmp.Or(p.Err, start.Err, end.Err); err != nil {
				row.Error = explained(err, "").Error()
			}
			d.Partitions = append(d.Partitions, row)
		}
		rc, err := configs.On(name, nil)
		if err != nil {
			return nil, fmt.Errorf("describe configuration of topic %s: %w", name, err)
		}
		for _, kv := range rc.Configs {
			if kv.Source.String() == "DYNAMIC_TOPIC_CONFIG" {
				d.Config[kv.Key] = kv.MaybeValue()
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// topicID is the text form of a topic id, as Kafka's tools print it.
func topicID(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

func (t describedTopic) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\tid %s\t%s", t.Topic, t.ID, counted(int64(len(t.Partitions)), "partition"))
	for _, k := range slices.Sorted(maps.Keys(t.Config)) {
		fmt.Fprintf(&b, "\t%s=%s", k, t.Config[k])
	}
	for _, p := range t.Partitions {
		if p.Error != "" {
			fmt.Fprintf(&b, "\n  %d\tleader %d\tepoch %d\t%s", p.Partition, p.Leader, p.LeaderEpoch, p.Error)
			continue
		}
		fmt.Fprintf(&b, "\n  %d\tleader %d\tepoch %d\tstart %d\tend %d", p.Partition, p.Leader, p.LeaderEpoch, p.Start, p.End)
	}
	return b.String()
}
