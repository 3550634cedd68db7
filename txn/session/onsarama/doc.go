// Package onsarama is the session of package session on IBM/sarama, for programs that use that client already: the same
// loop (consume, process, produce, commit), the same options, the same errors, the same tests.
//
// Sarama speaks version 1 of the transaction protocol, whatever the cluster offers. What that means:
//
//   - A zombie is fenced by its generation only because the offsets are added with the group's metadata
//     (AddOffsetsToTxnWithGroupMetadata, KIP-447), and by its producer's epoch as soon as the successor with the same
//     transactional id has opened. Offsets added without the metadata, which Sarama allows too, are not fenced by the group
//     at all.
//   - The epoch does not change from one transaction to the next. A request that the network holds back for longer than it
//     takes to end the transaction and begin another belongs, when it arrives, to that other one (KAFKA-17754): a late
//     EndTxn ends it half written. After a commit without a clear answer the session takes a new epoch before it goes on,
//     which closes this hole where the session learns of the trouble. It stays open where Sarama asks again by itself and
//     is answered. Who can not live with that uses package session, which speaks version 2.
//   - Partitions and the group are announced before they take part (AddPartitionsToTxn, AddOffsetsToTxn), which is a
//     request more for each.
//
// Sarama has no way to take a consumer back to an earlier offset but to leave and join again. The session keeps what was
// polled since the last commit instead, and delivers it again after an abort.
package onsarama
