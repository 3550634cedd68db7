// Package partition is one partition of a topic: its log, its producers' state and its watermarks.
package partition
