// Package wire holds the one message of the transaction protocol that the library of
// messages (franz-go's kmsg) does not have: InitProducerId version 6, with the fields
// of two-phase commit (KIP-939).
//
// [InitProducerIDRequest] is kmsg's request with two fields more, and kmsg's bytes up
// to version 5. A client sends it to the coordinator of its transactional id, by
// kgo.Client.Broker(id).Request; the client must allow version 6, see
// [AllowInitProducerID6].
package wire
