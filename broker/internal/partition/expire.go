package partition

// expireAtOnce bounds how many producers are forgotten under one hold of the append lock.
const expireAtOnce = 1024

// ExpireProducers forgets the producers that have been quiet for afterMs or longer (KIP-854), at a time in ms since 1970 that the
// caller trusts: a producer that is forgotten too early may have its retry stored a second time. One with an open transaction
// is never forgotten. It tells how many went; an append never waits for it long.
func (p *Partition) ExpireProducers(nowMs, afterMs int64) (n int) {
	for {
		p.mu.Lock()
		expired := p.producers.table.Expire(nowMs, afterMs, expireAtOnce)
		p.mu.Unlock()
		n += expired
		if expired < expireAtOnce {
			return n
		}
	}
}
