package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// Sampling of the profiles: one in mutexFraction contended unlocks, and one blocking
// event per blockNanos spent blocked.
const (
	mutexFraction = 10
	blockNanos    = 10_000
)

// startProfiles profiles this process into a folder: processor time from now on, and at the end memory, contended
// locks and where goroutines wait. It is for people who change the code (make profile-<work>): files only, no port, off
// unless asked for. The files are complete when the returned function has been called.
func startProfiles(dir string) (stop func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(blockNanos)
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(fmt.Errorf("profiles: %w", err), cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		err := cpu.Close()
		for _, name := range []string{"heap", "allocs", "mutex", "block", "goroutine"} {
			err = errors.Join(err, writeProfile(name, filepath.Join(dir, name+".pprof")))
		}
		if err != nil {
			return fmt.Errorf("profiles: %w", err)
		}
		return nil
	}, nil
}

func writeProfile(name, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, 0), f.Close())
}
