package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func benchStart(_ context.Context, e *env) error {
	if e.server == nil {
		return nil
	}
	e.add("start to first connection", "%.0f ms", float64(e.server.ready.Microseconds())/1000)
	e.add("memory, idle", "%.0f MB", e.server.residentMB())
	return nil
}

// benchRestart fills the log, kills the server and times the next start. It runs last: the address changes.
func benchRestart(ctx context.Context, e *env) error {
	if e.server == nil {
		return nil
	}
	e.add("memory after the load above", "%.0f MB", e.server.residentMB())
	var size int64
	err := filepath.WalkDir(e.server.dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".log" {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := e.server.kill(); err != nil {
		return err
	}
	if err := e.server.start(ctx); err != nil {
		return err
	}
	e.seeds = []string{e.server.addr}
	e.add(fmt.Sprintf("ready again after kill -9 with %.1f GB", float64(size)/1e9), "%.0f ms", float64(e.server.ready.Microseconds())/1000)
	return nil
}
