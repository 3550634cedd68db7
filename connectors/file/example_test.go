package file_test

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/connectors/file"
)

// Flights keyed by their origin, with the departure as the record's time.
func ExampleNew() {
	s, err := file.New(file.Config{
		Name: "flights", Paths: []string{"flights-20k.json.gz"}, Topic: "flights",
		Key:  file.Field("origin"),
		Time: file.TimeField("date", "2006/01/02 15:04", time.UTC),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Spec().Name, s.Spec().Connector)
	// Output: flights file
}
