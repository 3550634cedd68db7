package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Vitals are what the operating system says of a process. Everything is 0 where /proc does not exist.
type Vitals struct{ PID int }

// ResidentMB is the resident memory, mapped files included.
func (v Vitals) ResidentMB() float64 { return v.statusMB("VmRSS:") }

// PeakMB is the most that the process has had resident at any time.
func (v Vitals) PeakMB() float64 { return v.statusMB("VmHWM:") }

func (v Vitals) statusMB(key string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.PID))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			if kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64); err == nil {
				return kb / 1024
			}
		}
	}
	return 0
}

// ticksPerSecond is USER_HZ, which is 100 on every Linux that Go runs on.
const ticksPerSecond = 100

// CPU is the processor time used since the start, in user and in kernel mode, to 10 ms.
func (v Vitals) CPU() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.PID))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name in parentheses may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

// OpenFiles counts descriptors.
func (v Vitals) OpenFiles() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", v.PID))
	if err != nil {
		return 0
	}
	return len(entries)
}
