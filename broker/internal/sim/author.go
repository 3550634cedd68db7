package sim

import "fmt"

// author writes new records to the input topic: in transactions of version 1 or 2, some of which it aborts, or without any. It
// stops when it is told that it is enough, between two transactions.
type author struct {
	*producer
	enough func() bool
	where  func() partitionOf
	idle   bool
	round  int
	burst  bool // all of it at once, to one partition: as many as may be under way
	one    partitionOf
	left   int // batches of the transaction to send yet
	open   int // sent and not acknowledged
	commit bool
	// replaced says that another process has this one's place: it stops at the first failure.
	replaced bool
	broken   outcome // what ended the transaction early, good for nothing
}

func newAuthor(p *producer, where func() partitionOf, enough func() bool) *author {
	return &author{producer: p, where: where, enough: enough}
}

func (a *author) start() { a.begin(a.next) }

// next begins the next transaction, or the next few batches.
func (a *author) next() {
	if a.replaced {
		a.kill()
		return
	}
	if a.enough() {
		a.idle = true
		return
	}
	a.round++
	a.left, a.broken, a.open = 1+a.w.rng.IntN(5), good, 0
	if a.burst, a.one = a.w.chance(3), a.where(); a.burst {
		a.left = 5
	}
	if a.id == "" {
		a.more()
		return
	}
	a.learn(func() {
		a.producer.open()
		a.commit = !a.w.chance(4)
		a.more()
	})
}

// more sends a batch and plans the next one, without waiting for the answer: up to five are under way.
func (a *author) more() {
	if a.broken != good {
		return
	}
	if a.left == 0 {
		a.close()
		return
	}
	if a.open < 5 {
		a.left--
		a.open++
		to := a.where()
		if a.burst {
			to = a.one
		}
		items := make([]*item, 1+a.w.rng.IntN(3))
		for n := range items {
			items[n] = a.o.add(to.topic, to.index, a.txn, nil)
			items[n].weak = a.acks != all || to.topic == relaxed && a.txn == nil
			if to.topic == keyed {
				items[n].key, items[n].gone = fmt.Sprintf("key-%d", a.w.rng.IntN(keys)), a.w.chance(6)
			}
		}
		a.send(to, items, a.sent)
	}
	round := a.round
	pause := a.w.between(0, a.pace())
	if a.burst {
		pause = 0
	}
	a.after(pause, "write", func() {
		if a.round == round {
			a.more()
		}
	})
}

// sent hears what came of a batch.
func (a *author) sent(what outcome) {
	a.open--
	switch {
	case what != good && a.broken == good:
		a.broken = what
		a.recover()
	case what == good:
		a.close()
	}
}

// close ends the transaction when all of it is acknowledged.
func (a *author) close() {
	if a.left > 0 || a.open > 0 || a.broken != good {
		return
	}
	a.broken = again // nothing more of it
	if a.id == "" {
		a.after(a.w.between(0, 4*a.pace()), "next", a.next)
		return
	}
	a.end(a.commit, func(what outcome) {
		if what == good {
			a.after(a.w.between(0, 4*a.pace()), "next", a.next)
			return
		}
		a.broken = what
		a.recover()
	})
}

// recover goes on after a failure: by an abort where the protocol allows it, else by beginning anew, which aborts too.
func (a *author) recover() {
	if a.replaced {
		a.kill()
		return
	}
	if a.broken == abortable && a.id != "" {
		a.end(false, func(what outcome) {
			if what == good {
				a.next()
				return
			}
			a.begin(a.next)
		})
		return
	}
	a.after(a.soon(), "anew", func() { a.begin(a.next) })
}
