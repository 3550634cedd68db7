// Package rig is what the programs that measure stand on: brokers as processes of their own, ours and Apache Kafka's, what
// the operating system says of a process, and what a page has to say of the machine.
//
// A broker is measured as a user runs it: the server binary, or the published jars with the flags of their start script,
// over TCP on loopback, on a fresh folder. It is ready when it has answered a request, and ends by a signal. Figures of a
// process come from /proc; where that does not exist they are 0.
package rig
