// Package adopt makes a data folder of ours from one that Apache Kafka left: topics keep their names, ids, partitions, settings and
// every byte of their logs, groups keep their offsets, transactional ids their state.
//
// Kafka's own folder is not opened in place. What stands in its metadata log belongs to a controller, with a quorum, brokers and
// access rules that we do not have; one that both programs had written to could be opened by neither. So the folder is read, and a
// new one is written beside it; the old one stays as it was, and going back is starting Kafka again.
//
// # What is taken over
//
//   - Every topic that the metadata log knows and every partition of it: the log files byte for byte, the producers' snapshots, the
//     leader epochs, the topic's id. Indexes are made anew. The log start that DeleteRecords moved is kept.
//   - __consumer_offsets and __transaction_state, whose records are the same here. Groups of a protocol that we do not speak are kept
//     as records. A transaction that was open ends by its timeout, as in Kafka; one that was decided is brought to its end.
//   - The settings of topics that exist here, and the producer ids that were given out.
//
// Access rules, quotas, credentials, delegation tokens, share groups and the settings of brokers are not; the [Report] counts what
// was left out. Leader epochs rise by one, as with any change of the leader.
//
// # Safety
//
// The old folder has to be whole: stopped cleanly, with all replicas in it, and without damage, which is looked for in every byte
// (package inspect). The new one is made under another name and renamed when it is complete and durable; a half one is never
// taken for a data folder.
package adopt
