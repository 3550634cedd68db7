package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// copier consumes the input as a member of the group and writes each record to the output, exactly once: outputs and offsets are
// in one transaction, which says of which member and generation it is (KIP-447).
type copier struct {
	*producer
	m       *member
	parts   []int32
	readers map[int32]*reader
	turn    int
	// replaced says that another process has this one's place: it stops at the first failure.
	replaced bool

	working    bool // there is a transaction, or it is about to begin
	behind     bool // an assignment came meanwhile
	generation int32

	source   *reader // what the transaction copies from
	upTo     int64
	open     int // batches not acknowledged
	verdict  outcome
	finished bool // the sending is over, one way or the other
}

func newCopier(p *producer, m *member) *copier {
	c := &copier{producer: p, m: m}
	m.assigned = c.assigned
	return c
}

func (c *copier) start() { c.begin(c.m.join) }

// assigned begins to work on partitions, from where the group has committed.
func (c *copier) assigned(parts []int32) {
	c.parts = parts
	if c.behind = c.working; c.behind {
		return
	}
	c.working, c.generation, c.readers = true, c.m.generation, map[int32]*reader{}
	if len(parts) == 0 {
		c.loop()
		return
	}
	c.positions()
}

// positions asks where the group is. Offsets of transactions under way make it wait.
func (c *copier) positions() {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Group, req.RequireStable = 7, groupName, true
	rt := kmsg.NewOffsetFetchRequestTopic()
	rt.Topic, rt.Partitions = input, c.parts
	req.Topics = append(req.Topics, rt)
	c.call(toGroup, req, 0, always, func(r kmsg.Response, err error) {
		retry := func() {
			c.after(c.soon(), "positions again", func() {
				if c.working = false; !c.waits() {
					c.working = true
					c.positions()
				}
			})
		}
		if err != nil {
			retry()
			return
		}
		resp := r.(*kmsg.OffsetFetchResponse)
		if resp.ErrorCode != 0 {
			retry()
			return
		}
		found := map[int32]int64{}
		for _, row := range resp.Topics[0].Partitions {
			c.w.see("positions " + word(row.ErrorCode))
			if row.ErrorCode != 0 {
				retry()
				return
			}
			found[row.Partition] = max(row.Offset, 0)
		}
		for _, p := range c.parts {
			rd := &reader{process: c.process, o: c.o, of: partitionOf{input, p}, position: found[p], committed: true}
			rd.take = func(ids []got, next int64) { c.copy(rd, ids, next) }
			rd.moved = func() { c.w.fail("%s: position %d of %v is out of range", c.name, rd.position, rd.of) }
			c.readers[p] = rd
			c.w.log("%s: %s-%d from %d", c.name, input, p, found[p])
		}
		c.loop()
	})
}

// waits tells whether the group has to be heard first; the copier goes on with its next assignment then.
func (c *copier) waits() bool {
	switch {
	case c.behind:
		c.assigned(c.parts)
	case !c.m.joined: // it will be assigned something
	case c.m.rejoin:
		c.m.join()
	default:
		return false
	}
	return true
}

// loop takes the next partition, unless the group wants something.
func (c *copier) loop() {
	c.working = false
	if c.waits() {
		return
	}
	c.working = true
	if len(c.parts) == 0 {
		c.after(c.w.between(20*time.Millisecond, 60*time.Millisecond), "idle", c.loop)
		return
	}
	c.turn++
	rd := c.readers[c.parts[c.turn%len(c.parts)]]
	rd.fetch(100*time.Millisecond, func() { c.after(c.w.between(0, 20*c.pace()), "loop", c.loop) })
}

// copy makes a transaction of what was read.
func (c *copier) copy(rd *reader, records []got, next int64) {
	if len(records) == 0 {
		rd.position = next
		c.loop()
		return
	}
	c.source, c.upTo, c.verdict, c.open, c.finished = rd, next, good, 0, false
	c.learn(func() { c.write(rd, records, next) })
}

// write sends the copies.
func (c *copier) write(rd *reader, records []got, next int64) {
	c.producer.open()
	c.txn.moves, c.txn.from = next, rd.position
	c.txn.part = rd.of.index
	to := partitionOf{output, rd.of.index}
	for len(records) > 0 {
		n := 1 + c.w.rng.IntN(len(records))
		items := make([]*item, n)
		for i, g := range records[:n] {
			items[i] = c.o.add(to.topic, to.index, c.txn, c.o.items[g.id])
		}
		records = records[n:]
		c.open++
		c.send(to, items, c.sent)
	}
}

func (c *copier) sent(what outcome) {
	c.open--
	if what != good && c.verdict == good {
		c.verdict = what
	}
	if c.finished || c.open > 0 && c.verdict == good {
		return
	}
	c.finished = true
	if c.verdict != good {
		c.recover(c.verdict)
		return
	}
	c.offsets()
}

// offsets puts the position into the transaction.
func (c *copier) offsets() {
	if c.v2 {
		c.commitOffsets()
		return
	}
	t := c.txn
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.Version = 3
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = c.id, c.pid, c.epoch, groupName
	c.call(toCoordinator, req, 0, never, func(r kmsg.Response, err error) {
		if c.txn != t {
			return
		}
		what := unknown
		if err == nil {
			what = judge(r.(*kmsg.AddOffsetsToTxnResponse).ErrorCode)
		}
		switch what {
		case good:
			c.commitOffsets()
		case again, unknown:
			c.after(c.soon(), "add offsets again", c.offsets)
		default:
			c.recover(what)
		}
	})
}

func (c *copier) commitOffsets() {
	t := c.txn
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version = 3
	if c.v2 {
		req.Version = 5
	}
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = c.id, c.pid, c.epoch
	req.Group, req.Generation, req.MemberID, req.InstanceID = groupName, c.generation, c.m.id, c.m.instance
	rt := kmsg.NewTxnOffsetCommitRequestTopic()
	rt.Topic = input
	rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset = c.source.of.index, c.upTo
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	c.call(toCoordinator, req, 0, c.repeat(), func(r kmsg.Response, err error) {
		if c.txn != t {
			return
		}
		what := unknown
		if err == nil {
			code := r.(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
			c.w.log("%s: offsets: %s", c.name, word(code))
			c.w.see("offsets " + word(code))
			c.m.heard(code)
			what = judge(code)
		}
		switch what {
		case good:
			c.decide()
		case again, unknown:
			c.after(c.soon(), "offsets again", c.commitOffsets)
		default:
			c.recover(what)
		}
	})
}

// decide commits, or aborts and reads the same again.
func (c *copier) decide() {
	commit := !c.w.chance(6)
	c.end(commit, func(what outcome) {
		switch {
		case what != good:
			c.recover(what)
			return
		case commit:
			c.source.position = c.upTo
		}
		c.loop()
	})
}

// recover goes on after a failure, from what the group has committed.
func (c *copier) recover(what outcome) {
	if c.replaced {
		c.w.see("a zombie copier gives up")
		c.kill()
		return
	}
	again := func() {
		if c.working = false; !c.waits() {
			c.assigned(c.parts)
		}
	}
	if what == abortable && c.txn != nil {
		c.end(false, func(what outcome) {
			if what == good {
				again()
				return
			}
			c.begin(again)
		})
		return
	}
	c.after(c.soon(), "anew", func() { c.begin(again) })
}
