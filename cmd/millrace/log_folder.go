package main

import (
	"errors"
	"time"

	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/core/vfs"
)

// barPace is how often a progress bar is drawn.
const barPace = 100 * time.Millisecond

// openData opens a folder. What can not be read is no finding but an error of its own kind.
func openData(dir string) (*inspect.Data, error) {
	d, err := inspect.Open(vfs.OS(), dir)
	return d, ioError(err)
}

// ioError gives an error of reading the exit code that tells it from a finding.
func ioError(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// errFound says that something was found; what, was printed.
var errFound = errors.New("not everything is as it should be")
