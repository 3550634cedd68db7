// Package holes cuts at the places where other systems lose or double a message on its way into the log: between the write
// and the fsync, for each kind of acknowledgement, and between the fsync and the acknowledgement. docs/exactly-once.md says
// which other tests kill at the places behind these.
package holes
