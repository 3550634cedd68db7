// Command topn keeps the three products that sell best.
package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/examples/internal/stage"
	"github.com/millrace/millrace/streams"
)

// sold is a product with how many of it were sold.
type sold struct {
	Product string
	N       int64
}

// ranking is all products, the best first. It has more than three: when one of them
// falls behind, the next one takes its place.
type ranking []sold

func (r ranking) add(s sold) ranking {
	at, _ := slices.BinarySearchFunc(r, s, better)
	return slices.Insert(r, at, s)
}

func (r ranking) remove(s sold) ranking {
	if at, ok := slices.BinarySearchFunc(r, s, better); ok {
		return slices.Delete(r, at, at+1)
	}
	return r
}

func better(a, b sold) int {
	return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Product, b.Product))
}

func best(r ranking) string {
	var top []string
	for _, s := range r[:min(3, len(r))] {
		top = append(top, fmt.Sprint(s.Product, " ", s.N))
	}
	return strings.Join(top, ", ")
}

// job reads products by customer, counts them, and puts the counts into one ranking. When a count
// changes, the table of counts takes the old one out and puts the new one in.
func job(prefix string) *streams.App {
	app := streams.New(prefix + "topn")
	app.Stream[string, string](prefix+"sales").
		GroupBy(func(product string) string { return product }).
		Count(streams.As("sold")).
		GroupBy(func(product string, n int64) (string, sold) { return "all", sold{product, n} }, streams.As("ranked")).
		Aggregate(streams.Balance(func() ranking { return ranking{} }, ranking.add, ranking.remove), streams.As("ranking")).
		MapValues(best).
		To(prefix + "top")
	return app
}

func main() { play().Main() }

func play() stage.Play {
	var sales []stage.Record[string, string]
	for i, product := range strings.Fields("tea cup tea pot jam cup cup jam jam jam") {
		at := time.Date(2026, 6, 1, 12, i, 0, 0, time.UTC)
		sales = append(sales, stage.Record[string, string]{At: at, Key: "ann", Value: product})
	}
	return stage.Play{
		Name: "topn", About: "Keeps the three products that sell best; every sale gives the new list.", Job: job,
		In: []stage.Input{stage.In("sales", sales...)},
		Out: []stage.Output{stage.Out("top", len(sales), func(r streams.Record[string, string]) string {
			return r.Time.Format("15:04 ") + r.Value
		})},
	}
}
