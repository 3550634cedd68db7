package broker

// Offline lists the partitions (topic-partition) that can not be served now, each with the reason: damage found at the start, a sync
// that failed, a full disk when it was to be opened. It is empty on a healthy broker. Clients of such a partition are answered with
// KAFKA_STORAGE_ERROR; all others go on. What a full disk kept from opening is opened when somebody asks for it and there is room;
// all else stays as it is until the broker is started again, or the folder was repaired (millrace log verify says how it is).
func (b *Broker) Offline() map[string]string {
	out := map[string]string{}
	for name, err := range b.replicas.Offline() {
		out[name] = err.Error()
	}
	return out
}
