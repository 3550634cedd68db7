package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// alterFlags are the flags of a command that changes settings.
type alterFlags struct {
	set, remove, append, subtract []string
	dry                           bool
}

func (a *alterFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&a.set, "set", nil, "key=value; may be repeated, as all of these")
	f.StringArrayVar(&a.remove, "delete", nil, "key to reset")
	f.StringArrayVar(&a.append, "append", nil, "key=value to add to a list")
	f.StringArrayVar(&a.subtract, "subtract", nil, "key=value to take out of a list")
	f.BoolVar(&a.dry, "dry-run", false, "say whether the broker would do it, and change nothing")
}

// changes is what the flags ask for.
func (a *alterFlags) changes(cmd *cobra.Command) (out []kadm.AlterConfig, err error) {
	for _, f := range []struct {
		flag string
		op   kadm.IncrementalOp
		args []string
	}{{"set", kadm.SetConfig, a.set}, {"append", kadm.AppendConfig, a.append}, {"subtract", kadm.SubtractConfig, a.subtract}} {
		for _, kv := range f.args {
			k, v, ok := strings.Cut(kv, "=")
			if !ok || k == "" {
				return nil, badUsage("--%s is %q, must be key=value", f.flag, kv)
			}
			out = append(out, kadm.AlterConfig{Op: f.op, Name: k, Value: &v})
		}
	}
	for _, k := range a.remove {
		out = append(out, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: k})
	}
	if len(out) == 0 {
		return nil, badUsage("%s needs --set, --delete, --append or --subtract", cmd.CommandPath())
	}
	return out, nil
}
