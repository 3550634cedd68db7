package rig

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Line is a row of the table that says what the figures depend on.
type Line struct{ What, Value string }

// Setting describes what the figures depend on: time, commit, machine and the folder's file system, then what the
// caller adds. A line without a value is left out.
func Setting(ctx context.Context, dir string, more ...Line) string {
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	for _, l := range append([]Line{
		{"begun", time.Now().UTC().Format("2006-01-02 15:04 MST")},
		{"commit", commit(ctx)},
		{"machine", fmt.Sprintf("%s, %d cores, %s memory", processor(), runtime.NumCPU(), memory())},
		{"system", strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + firstLine("/proc/sys/kernel/osrelease"))},
		{"data folders on", fileSystem(dir)},
		{"load average at the start", load()},
		{"Go", runtime.Version()},
	}, more...) {
		if l.Value != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", l.What, l.Value)
		}
	}
	return b.String()
}

// KafkaLines are the lines for Apache Kafka from the jars in lib; none without such a folder.
func KafkaLines(ctx context.Context, lib string) []Line {
	if lib == "" {
		return nil
	}
	return []Line{
		{"Apache Kafka", kafkaVersion(lib) + ", one node (KRaft, combined), 1 GB heap, G1, other settings as shipped"},
		{"Java", javaVersion(ctx)},
	}
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// valueOf finds a line "key : value" of a file in /proc.
func valueOf(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func processor() string {
	if m := valueOf("/proc/cpuinfo", "model name"); m != "" {
		return m
	}
	return "processor unknown"
}

func memory() string {
	var kb int64
	if _, err := fmt.Sscanf(valueOf("/proc/meminfo", "MemTotal"), "%d kB", &kb); err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%d GB", (kb+1<<19)>>20)
}

func load() string {
	words := strings.Fields(firstLine("/proc/loadavg"))
	if len(words) < 3 {
		return ""
	}
	return strings.Join(words[:3], " ")
}

// fileSystem is the type of the file system that holds dir: an fsync of a file in memory says nothing.
func fileSystem(dir string) string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return ""
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return ""
	}
	best, found := "", ""
	for line := range strings.Lines(string(mounts)) {
		words := strings.Fields(line)
		if len(words) < 3 || len(words[1]) < len(best) {
			continue
		}
		if rel, err := filepath.Rel(words[1], dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			best, found = words[1], words[2]
		}
	}
	return found
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	s := strings.TrimSpace(string(out))
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err == nil {
		for line := range strings.Lines(string(changed)) {
			if !strings.Contains(line, "benchmarks/") || strings.Contains(line, ".go") { // not the pages that this program writes
				return s + ", with changes that are not committed"
			}
		}
	}
	return s
}

// ModuleVersion is the version of a module that this program is built with.
func ModuleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, d := range info.Deps {
		if d.Path == path {
			return d.Version
		}
	}
	return "unknown"
}

func kafkaVersion(lib string) string {
	jars, err := filepath.Glob(filepath.Join(lib, "kafka_2.13-*.jar"))
	if err != nil || len(jars) == 0 {
		return "unknown"
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "kafka_2.13-"), ".jar")
}

func javaVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return "unknown"
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(lines[min(1, len(lines)-1)])
}
