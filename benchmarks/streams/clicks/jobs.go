package clicks

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/streams"
)

// Options of a job. The zero value works.
type Options struct {
	// Cached keeps back the updates of that many keys until the commit; 0 sends every update.
	Cached int
	// Seen is called for each record that comes in, from the workers' goroutines.
	Seen func()
}

// The jobs, by name.
const (
	// Map keeps the dear clicks and files them by page.
	Map = "map"
	// Count counts the clicks of each user.
	Count = "count"
	// Minute counts the clicks of each user and minute, with ten seconds of grace.
	Minute = "minute"
	// Latest keeps the last click of each user and sends nothing.
	Latest = "latest"
	// Relay passes values on.
	Relay = "relay"
)

// Job builds a job that reads one topic and writes another.
func Job(name, id, in, out string, o Options) (*streams.App, error) {
	app := streams.New(id)
	clicks := app.Stream[string, string](in)
	if o.Seen != nil {
		clicks = clicks.Peek(func(string, string) { o.Seen() })
	}
	counts := []streams.Opt{streams.As("counts")}
	if o.Cached > 0 {
		counts = append(counts, streams.Cached(o.Cached))
	}
	switch name {
	case Map:
		clicks.Filter(dear).Map(func(_, click string) (page, same string) { return pageOf(click), click }).To(out)
	case Count:
		clicks.GroupByKey().Count(counts...).To(out)
	case Minute:
		clicks.GroupByKey().
			Windowed(streams.Tumbling(time.Minute, streams.Grace(10*time.Second))).
			Count(counts...).ToStream().To(out)
	case Latest:
		clicks.GroupByKey().Reduce(func(_, last string) string { return last }, streams.As("latest"))
	case Relay:
		clicks.MapValues(func(v string) string { return v }).To(out)
	default:
		return nil, fmt.Errorf("there is no job %q", name)
	}
	return app, nil
}

// dear clicks cost ten or more.
func dear(click string) bool {
	cents, err := strconv.Atoi(click[strings.LastIndexByte(click, ':')+1 : len(click)-1])
	return err == nil && cents >= 1000
}

// pageOf is the url of a click.
func pageOf(click string) string {
	_, rest, _ := strings.Cut(click, `"url":"`)
	url, _, _ := strings.Cut(rest, `"`)
	return url
}
