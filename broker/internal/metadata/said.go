package metadata

import "fmt"

// kafkaText is an error in Kafka's own words: tools show them, people search for
// them, and some clients look for parts of them.
type kafkaText string

func (t kafkaText) Error() string { return string(t) }

func said(format string, args ...any) error { return kafkaText(fmt.Sprintf(format, args...)) }
