// Package commitlog is the log of one partition on disk.
package commitlog
