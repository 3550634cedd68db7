package partition

// Failure says why the partition went offline while it was open: a sync that failed, or a write that could not be taken back. nil
// while it works, and once it was closed or deleted.
func (p *Partition) Failure() error {
	if e := p.failed.Load(); e != nil && e.Code == CodeKafkaStorageError {
		return e
	}
	return nil
}
