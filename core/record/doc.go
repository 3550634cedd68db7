// Package record is Kafka's record batch, format 2: the unit in which producers send, the log stores and consumers fetch.
package record
