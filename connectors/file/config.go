package file

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/connectors"
)

// Format is how records are written in a file.
type Format string

// The formats. The empty Format goes by the file's name: .csv, or .json, .jsonl
// and .ndjson, each also with .gz behind it. Whether a file is gzipped is seen
// from its first bytes, not from its name.
const (
	JSON Format = "json" // one array of values, or values one after the other
	CSV  Format = "csv"  // the first line names the columns
)

// Config are the settings of a source. Name, Paths and Topic are required.
type Config struct {
	// Name is the source's identity: with the path it is the key of the stored
	// position.
	Name   string
	Paths  []string
	Format Format
	Topic  string
	// Key makes the record's key; a nil result is a null key. Default: null.
	Key func(Row) ([]byte, error)
	// Time makes the record's time. Default: the time of reading.
	Time TimeFunc
	// UnitRecords is how many records go into one transaction, 1..100000.
	// Default 1000.
	UnitRecords int
	// MaxRecordBytes bounds one record, 1 KiB..1 GiB. Default 16 MiB. What is
	// longer is an error, not memory.
	MaxRecordBytes int
}

const (
	defaultUnit = 1000
	maxUnit     = 100_000
	defaultMax  = 16 << 20
)

func (c Config) withDefaults() Config {
	if c.UnitRecords == 0 {
		c.UnitRecords = defaultUnit
	}
	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = defaultMax
	}
	return c
}

// Validate names every setting that is wrong and its limit.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	need := func(ok bool, field, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
		}
	}
	need(c.Name != "", "Name", "required")
	need(c.Topic != "", "Topic", "required")
	need(len(c.Paths) > 0, "Paths", "at least one is required")
	seen := map[string]bool{}
	for i, p := range c.Paths {
		field := fmt.Sprintf("Paths[%d]", i)
		need(!seen[p], field, "%q is there twice", p)
		seen[p] = true
		_, err := c.format(p)
		need(err == nil, field, "%v", err)
	}
	need(c.UnitRecords >= 1 && c.UnitRecords <= maxUnit, "UnitRecords", "%d is outside 1..%d", c.UnitRecords, maxUnit)
	need(c.MaxRecordBytes >= 1<<10 && c.MaxRecordBytes <= 1<<30, "MaxRecordBytes", "%d is outside %d..%d", c.MaxRecordBytes, 1<<10, 1<<30)
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: file: %w", connectors.ErrConfig, errors.Join(errs...))
}

// format returns the format of one path.
func (c Config) format(path string) (Format, error) {
	switch c.Format {
	case JSON, CSV:
		return c.Format, nil
	case "":
	default:
		return "", fmt.Errorf("format %q is neither json nor csv", c.Format)
	}
	switch filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz")) {
	case ".csv":
		return CSV, nil
	case ".json", ".jsonl", ".ndjson":
		return JSON, nil
	}
	return "", fmt.Errorf("the name %q does not tell the format; set Format", path)
}
