package cleaner

// forget is a round over the producers of all partitions: those that have been quiet for too long are forgotten.
func (c *Cleaner) forget(nowMs int64) {
	n := int64(0)
	for p := range c.o.Partitions {
		if c.closed.Load() {
			return
		}
		n += int64(p.ExpireProducers(nowMs, c.o.ProducersAfter.Milliseconds()))
	}
	c.status.forgot(n)
}
