package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// compileJava compiles the jobs for Kafka Streams against the published jars, and returns the folder of the classes.
func compileJava(ctx context.Context, lib, sources, work string) (string, error) {
	classes := filepath.Join(work, "classes")
	if err := os.MkdirAll(classes, 0o755); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(sources, "*.java"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("-java: no source in %s", sources)
	}
	out, err := exec.CommandContext(ctx, "javac", append([]string{"-cp", filepath.Join(lib, "*"), "-d", classes}, files...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	return classes, nil
}

// javaHeap is the most that a job on Kafka Streams may use of it; its stores have their memory outside.
const javaHeap = "-Xmx1g"

// command is the process for a job.
func (f flags) command(s spec) (*exec.Cmd, error) {
	if s.engine == kstreamsEngine {
		jars := filepath.Join(f.kafka, "*") + string(os.PathListSeparator) + f.classes
		return exec.Command("java", append([]string{javaHeap, "-cp", jars, "Job"}, s.args()...)...), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, append([]string{jobWord}, s.args()...)...), nil
}
