// Command wordcount counts the words of lines: everybody's first job.
package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

// job splits lines into words and sends the new count of each. Words are grouped
// without regard to case; the group's key is another than the line's, so the words
// travel through a repartition topic to the task that counts them.
func job(prefix string) *streams.App {
	app := streams.New(prefix + "wordcount")
	app.Stream[string, string](prefix + "lines").
		FlatMapValues(strings.FieldsSeq).
		GroupBy(strings.ToLower).
		Count(streams.As("words")).
		To(prefix + "counts")
	return app
}

func main() { play().Main() }

func play() stage.Play {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	return stage.Play{
		Name: "wordcount", About: "Counts the words of lines; every word gives its new count.", Job: job,
		In: []stage.Input{stage.In("lines",
			stage.Record[string, string]{At: at, Value: "The mill turns"},
			stage.Record[string, string]{At: at, Value: "the race turns the mill"},
		)},
		Out: []stage.Output{stage.Out("counts", 8, func(r streams.Record[string, int64]) string {
			return fmt.Sprint(r.Key, " ", r.Value)
		})},
	}
}
