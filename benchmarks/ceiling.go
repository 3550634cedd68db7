package main

import (
	"context"
	"os"
	"os/exec"

	"github.com/millrace/millrace/benchmarks/rig"
)

// ceiling is an in-memory broker in Go that syncs nothing and checks little: this program, started with -serve-kfake.
// What it reaches is what the client allows.
func ceiling() (*rig.Process, error) {
	addr, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return rig.NewProcess("client's ceiling", "", addr, func(ctx context.Context, p *rig.Process) *exec.Cmd {
		return exec.CommandContext(ctx, self, "-serve-kfake", p.Addr)
	}), nil
}
