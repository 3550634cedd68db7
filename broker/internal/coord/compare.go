package coord

// Compare replays the log into a second machine and hands both to f, under the
// shard's lock: a test holds what runs against what a restart would find. It does
// nothing while there is no machine.
func (s *Shard[M]) Compare(f func(live, replayed M)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != serving {
		return nil
	}
	again := s.o.New(s.index)
	if _, _, err := s.replay(s.log, again); err != nil {
		return err
	}
	f(s.machine, again)
	return nil
}

// Compare is [Shard.Compare] of one partition, with the machines written down.
func (t *Transactions) Compare(index int32, f func(live, replayed string)) error {
	s := t.rt.Shard(index)
	if s == nil {
		return ErrNoPartition
	}
	return s.Compare(func(live, replayed *txnMachine) { f(live.Dump(), replayed.Dump()) })
}
