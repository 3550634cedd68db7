// Command millrace runs a Millrace broker and talks to it, or to any other broker
// of the Kafka protocol, from the command line.
//
//	millrace server --data-dir ./data --listen 127.0.0.1:9092
//	millrace topic create orders --partitions 3
//	millrace produce orders < orders.txt
//	millrace consume orders --from-beginning
//
// Results go to standard output, one line or one JSON object each; everything else
// goes to standard error. Exit codes: 0 success, 1 the work failed, 2 the command
// line makes no sense.
package main
