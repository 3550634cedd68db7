package mutations

// Mutation is one fault, as an edit of the source.
type Mutation struct {
	Name string
	// What goes wrong, in a few words.
	What  string
	Edits []Edit
}

// Edit replaces a text that stands in a file exactly once.
type Edit struct {
	File     string // from the root of the module
	Old, New string
}

// Files that several mutations are in.
const (
	check      = "txn/producer/check.go"
	table      = "txn/producer/table.go"
	add        = "txn/coordinator/add_partitions.go"
	end        = "txn/coordinator/end_txn.go"
	initialize = "txn/coordinator/init_producer_id.go"
	appending  = "broker/internal/partition/append.go"
	durable    = "broker/internal/partition/durable.go"
	reading    = "broker/internal/partition/read.go"
	step       = "broker/internal/coord/step.go"
	produce    = "broker/internal/api/00_produce.go"
	replay     = "broker/internal/group/replay.go"
	commit     = "broker/internal/group/commit.go"
	recovery   = "broker/internal/commitlog/replay.go"
	syncing    = "broker/internal/commitlog/sync.go"
)

// All is the table. Where two checks guard the same thing a mutation takes both away: one alone would change nothing.
var All = []Mutation{
	{"no-epoch-check", "a producer that was fenced goes on", []Edit{
		{check, "	if b.Epoch < e.epoch {\n		return Duplicate{}, false, refuse(", "	if false {\n		return Duplicate{}, false, refuse("},
		{add, "	default:\n		return fenced(r.Version, addKnowsFenced)", "	default:\n		return CodeNone"},
	}},
	{"epoch-reused", "InitProducerId gives the epoch that another has", []Edit{
		{initialize, "		next.epoch = t.epoch + 1\n", "		next.epoch = t.epoch\n"},
	}},
	{"fence-without-epoch", "an open transaction is aborted under its own epoch", []Edit{
		{"txn/coordinator/tick.go", "	next.epoch = min(md.epoch, maxDataEpoch) + 1\n", "	next.epoch = md.epoch\n"},
	}},
	{"end-without-epoch", "version 2 ends a transaction under its own epoch", []Edit{
		{end, "	next.epoch = min(t.epoch, maxDataEpoch) + 1\n", "	next.epoch = t.epoch\n"},
	}},
	{"open-not-aborted", "InitProducerId forgets the open transaction", []Edit{
		{initialize, "		return m.initOverOpen(t, nowMs, to, r)", "		return m.initNext(t, nowMs, to, r)"},
	}},
	{"timeout-commits", "a transaction that timed out is committed", []Edit{
		{"txn/coordinator/tick.go", "md.to(PrepareAbort, nowMs)", "md.to(PrepareCommit, nowMs)"},
	}},
	{"partitions-forgotten", "adding a partition drops those before it", []Edit{
		{add, "		next.partitions = t.with(r.Partitions)", "		next.partitions = metadata{}.with(r.Partitions)"},
	}},
	{"decisions-forgotten", "a restart does not carry decisions on", []Edit{
		{"txn/coordinator/machine.go", "func (m *Machine) Loaded() Output {\n", "func (m *Machine) Loaded() Output {\n	if m != nil {\n		return Output{}\n	}\n"},
	}},
	{"producer-ids-again", "a restart gives producer ids out a second time", []Edit{
		{"broker/internal/metadata/store.go", "producerIDs{next: im.NextProducerID, end: im.NextProducerID}", "producerIDs{next: max(im.NextProducerID-producerIDBlock, 0), end: im.NextProducerID}"},
	}},
	{"answer-before-fsync", "acks=all is answered from the page cache", []Edit{
		{produce, "	case p.acks == -1:\n		p.pending.Add(1)", "	case p.acks == -2:\n		p.pending.Add(1)"},
	}},
	{"failed-fsync-acknowledged", "a sync that failed is taken for one", []Edit{
		{produce, "			if err != nil {\n				r.fail(err)\n			}\n			p.settled()", "			p.settled()"},
	}},
	{"decision-before-fsync", "a coordinator answers before its record is durable", []Edit{
		{step, "	st.log.Await(st.last, func(err error) { s.settle(st, err) })", "	s.settle(st, nil)"},
	}},
	{"markers-before-decision", "markers are written while the decision is not durable", []Edit{
		{step, "	st.log.Await(st.last, func(err error) { s.settle(st, err) })", `	if early := st.effects; len(early) > 0 {
		st.effects = nil
		s.work.push(func() {
			for _, e := range early {
				s.o.Effect(s, e)
			}
		})
	}
	st.log.Await(st.last, func(err error) { s.settle(st, err) })`},
	}},
	{"complete-before-markers", "a transaction is complete while its markers are not durable", []Edit{
		{"broker/internal/coord/markers.go", "	p.AwaitDurable(a.LastOffset, durable)\n	return nil", "	_ = a\n	durable(nil)\n	return nil"},
	}},
	{"high-watermark-ahead", "what came during a sync counts as synced", []Edit{
		{durable, "	p.reached(end)\n", "	p.reached(p.log.End())\n"},
	}},
	{"journal-ahead", "the journal says durable of what is not", []Edit{
		{durable, "	p.handle.NoteSynced(end.Offset)\n", "	p.handle.NoteSynced(p.log.End().Offset + 1)\n"},
	}},
	{"rolled-segment-unsynced", "the segment before a roll is not synced", []Edit{
		{syncing, "		if s.syncedSize >= size {\n			continue\n		}\n		file, err", "		if s != p.active || s.syncedSize >= size {\n			continue\n		}\n		file, err"},
	}},
	{"dirty-again-lost", "a batch that came during a sync is never synced", []Edit{
		{"broker/internal/flush/flusher.go", "	if !h.state.CompareAndSwap(running, clean) {\n		f.again(h)\n	}\n", "	h.state.Store(clean)\n"},
	}},
	{"wrong-waiter", "group commit answers whoever waits for one offset more", []Edit{
		{"broker/internal/partition/waiters.go", "return w.queue[i].offset >= to })", "return w.queue[i].offset > to })"},
	}},
	{"sequence-missing-in-snapshot", "a snapshot has not got the last batch of a producer", []Edit{
		{"txn/producer/snapshot.go", "	dst = append(dst, byte(e.n))\n	for _, s := range e.window[:e.n] {", "	dst = append(dst, byte(max(e.n-1, 0)))\n	for _, s := range e.window[:max(e.n-1, 0)] {"},
	}},
	{"window-of-four", "the fifth batch back is not recognised", []Edit{
		{"txn/producer/entry.go", "const Window = 5", "const Window = 4"},
	}},
	{"duplicates-appended", "a batch that comes again is appended again", []Edit{
		{check, "	if d, ok := e.duplicate(b); ok {\n		return d, true, nil\n	}\n", "	if _, ok := e.duplicate(b); ok {\n		return Duplicate{}, false, nil\n	}\n"},
	}},
	{"gaps-accepted", "a sequence that does not follow is taken", []Edit{
		{check, "	if b.BaseSequence != want {", "	if b.BaseSequence < want {"},
		{"broker/internal/partition/guards.go", "any && have.epoch == epoch && have.lowest < sequence", "false && any"},
	}},
	{"refused-overtaken", "a batch overtakes one that was refused for now", []Edit{
		{"broker/internal/partition/guards.go", "any && have.epoch == epoch && have.lowest < sequence", "false && any"},
	}},
	{"stable-by-last", "the last stable offset follows the last open transaction", []Edit{
		{table, "	if t.open.head == nil {\n		return 0, false\n	}\n	return t.open.head.txnFirstOffset, true", "	if t.open.tail == nil {\n		return 0, false\n	}\n	return t.open.tail.txnFirstOffset, true"},
	}},
	{"stable-before-marker", "a marker that is not durable decides", []Edit{
		{appending, "		p.tracker.Decided(first, offset)\n", "		_ = first\n"},
	}},
	{"fetch-beyond-high-watermark", "readers are served what is not durable", []Edit{
		{reading, "		return v.high, nil\n", "		return p.log.End(), nil\n"},
	}},
	{"committed-reads-all", "readers of committed data are served open transactions", []Edit{
		{reading, "	if !committed || v.stable >= v.high.Offset {", "	if v.stable >= 0 {"},
	}},
	{"aborted-entry-missing", "the index has not got an aborted transaction", []Edit{
		{appending, "		p.log.AddAborted(entry)\n", "		_ = entry\n"},
	}},
	{"aborted-entry-lost-in-recovery", "a recovery makes the index without the aborted transactions", []Edit{
		{recovery, "	if aborted && fresh {", "	if aborted && fresh && false {"},
	}},
	{"torn-tail-believed", "a recovery does not look at checksums", []Edit{
		{recovery, "	if err := b.CheckCRC(); err != nil {\n		return err\n	}\n	base := ", "	base := "},
	}},
	{"log-start-not-durable", "deleted records come back", []Edit{
		{"broker/internal/partition/ending.go", "	if err := p.handle.SetLogStart(before); err != nil {\n		return -1, p.storage(\"delete records\", err)\n	}\n", ""},
	}},
	{"aborted-offsets-applied", "offsets of an aborted transaction count", []Edit{
		{replay, "		if mk.Commit {\n", "		if mk.ProducerID >= 0 {\n"},
	}},
	{"offsets-before-commit", "offsets of a transaction count before it is committed", []Edit{
		{replay, "	if r.Transactional {\n		m.hold(", "	if r.Transactional && r.Offset < 0 {\n		m.hold("},
	}},
	{"pending-offsets-lost-at-load", "a load forgets offsets of open transactions", []Edit{
		{replay, "		m.hold(g, r.ProducerID, p, c)\n", "		if m.loaded {\n			m.hold(g, r.ProducerID, p, c)\n		}\n"},
	}},
	{"unstable-offsets-shown", "a new owner does not wait for the transaction of the last one", []Edit{
		{"broker/internal/group/fetch.go", "	if stable && g.unstable(p, id) {", "	if stable && g.unstable(p, id) && false {"},
	}},
	{"generation-not-fenced", "offsets of an earlier generation are taken", []Edit{
		{commit, "	case c.Generation != g.live.generation:\n		return kerr.IllegalGeneration.Code\n", ""},
	}},
	{"member-not-fenced", "offsets of somebody who is no member are taken", []Edit{
		{commit, "	self, code := check(g, c.Member, c.Instance)\n	switch {\n	case code != 0:\n		return code\n	case c.Generation != g.live.generation:\n		return kerr.IllegalGeneration.Code\n	}\n	m.alive(self)\n",
			"	if self, code := check(g, c.Member, c.Instance); code == 0 {\n		m.alive(self)\n	}\n"},
	}},
	{"old-version-kept", "a transaction of version 1 ends as one of version 2, because the last one was", []Edit{
		{end, "		next.clientVersion, next.lastEpoch = 0, none\n", "		next.lastEpoch = none\n"},
		{add, "		next.clientVersion = 0\n", ""},
	}},
	{"version-by-level", "the cluster's level says how a request is served, not its version", []Edit{
		{produce, "parts, p.c.Version < 12,", "parts, p.s.Meta.Image().Features[metadata.TransactionVersion] < 2,"},
		{produce, "	\"github.com/millrace/millrace/broker/internal/listener\"\n", "	\"github.com/millrace/millrace/broker/internal/listener\"\n	\"github.com/millrace/millrace/broker/internal/metadata\"\n"},
	}},
	{"commit-without-records", "a commit does not wait for what was acknowledged from the page cache", []Edit{
		{"txn/coordinator/written.go", "	return t.partitions\n", "	return nil\n"},
	}},
	{"headless-kept", "a log that lost its beginning before its first flush begins where it can", []Edit{
		{"broker/internal/commitlog/inventory.go", "	if len(list) == 0 || list[0].base <= r.point.LogStart {\n", "	if len(list) >= 0 {\n"},
	}},
	{"compacted-past-stable", "compaction does not stop at the last stable offset", []Edit{
		{"broker/internal/partition/compact.go", "	r.pieces, waiting = p.log.Pieces(stable)\n", "	r.pieces, waiting = p.log.Pieces(max(stable, p.view.Load().high.Offset))\n"},
	}},
	{"aborted-hides", "the record of an aborted transaction takes the place of the committed one", []Edit{
		{"broker/internal/compact/txns.go", "		a.seen = true\n		return true, nil\n", "		a.seen = true\n		return false, nil\n"},
	}},
	{"tombstones-at-once", "compaction takes a deletion away before readers can have seen it", []Edit{
		{"broker/internal/compact/filter.go", "r.Value == nil && f.expired:", "r.Value == nil:"},
	}},
	{"unclean-start-untold", "the leader epoch does not tell that a relaxed topic lost its end", []Edit{
		{"broker/unclean.go", "	if s.flusher.Clean() {\n", "	if s != nil {\n"},
	}},
	{"bound-of-loss", "one record more than flush.messages allows is acknowledged unsynced", []Edit{
		{"broker/internal/partition/relaxed.go", "	if c.FlushMessages > 0 && end.Offset-p.durable.Offset >= c.FlushMessages {\n", "	if c.FlushMessages > 0 && end.Offset-p.durable.Offset > c.FlushMessages {\n"},
	}},
	{"no-descriptor-taken-for-a-failed-sync", "a folder that can not be opened for want of descriptors takes its partition offline", []Edit{
		{syncing, "	return errors.As(err, &s) && !vfs.NoRoom(s.err) || errors.Is(err, ErrBroken)\n", "	return errors.As(err, &s) || errors.Is(err, ErrBroken)\n"},
	}},
	{"relaxed-transactions", "records of a transaction are acknowledged as their topic says", []Edit{
		{produce, "		if p.transactional { // a decision", "		if p.transactional && p.acks == 0 { // a decision"},
	}},
}
