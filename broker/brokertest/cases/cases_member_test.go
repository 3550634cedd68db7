package cases

import (
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var memberCases = []testCase{
	{"G04", "krabka", restart, deletedGroupStaysDeleted},
	{"G06", "KAFKA-9752, KAFKA-9232, KAFKA-7610, KAFKA-7909", restart, membersThatVanish},
	{"G07", "KAFKA-9801, KAFKA-8500, KAFKA-8715, KAFKA-10284", restart, staticMemberComesBack},
	{"G10", "KAFKA-14422", speak, oldVersionsBesideStaticMembers},
	{"G15", "KAFKA-10870", speak, codesOfJoin},
	{"G19", "nisshi#679", speak, memberWithNothing},
	{"G22", "redpanda#8998, KAFKA-14744", speak, allOffsets},
	{"G30", "KAFKA-14505 [8/8]", speak, both(deletedOffsetsStayDeleted)},
	{"G31", "KAFKA-9065, KAFKA-4704", restart, groupIDsAgain},
	{"G40", "krabka#1181", speak, leavingWhatIsNotThere},
	{"G42", "sarama#2947, #3477", speak, commitsInOrder},
	{"G43", "franz-go#57, librdkafka 1.9", speak, commitsAroundARebalance},
	{"G45", "millpond#87, quixstreams#1114", speak, offsetBelowTheLogStart},
	{"G46", "kfake", crash, membersOfADeadBroker},
	{"G49", "krabka#1182", restart, nothingIsEmptyWhileItLoads},
	{"G48", "redpanda#3279 (KIP-447)", speak, transactionalCommitsAreFenced},
}

func deletedGroupStaysDeleted(tg *target) {
	topic, group := tg.topic("t", 1), tg.name("g")
	tg.commitOffset(group, topic, 7, nil)
	tg.deleteGroup(group)
	for _, when := range []string{"at once", "after a restart"} {
		if p := tg.committed(group, topic, 0); p.Offset != -1 {
			tg.Fatalf("%s: offset %d of a deleted group", when, p.Offset)
		}
		if tg.listed(group) {
			tg.Fatalf("%s: the deleted group is listed", when)
		}
		tg.hangUp()
		tg.own.Restart(tg)
	}
}

// membersThatVanish joins in every version that keeps a place, and never comes back.
func membersThatVanish(tg *target) {
	group := tg.name("g")
	for i := range 200 {
		s := tg.seat(group)
		s.sessionMs = 100
		if err := s.w.send(s.w.frame(s.joinRequest(int16(i % 6)))); err != nil {
			tg.Fatal(err)
		}
		s.w.close()
	}
	s := tg.seat(group)
	s.join()
	tg.eventually("the vanished are forgotten", func() (bool, string) {
		if _, c := s.sync(map[string]string{s.id: "mine"}); c != 0 {
			s.join()
		}
		d := tg.described(group)
		return d.State == "Stable" && len(d.Members) == 1 && d.Members[0].MemberID == s.id, fmt.Sprintf("%s with %d members", d.State, len(d.Members))
	})
}

func staticMemberComesBack(tg *target) {
	topic, group, name := tg.topic("t", 1), tg.name("g"), "a"
	old := tg.seat(group)
	old.instance = &name
	old.settle()
	back := tg.seat(group)
	back.instance = &name
	resp := back.join()
	if back.id == old.id || resp.Generation != old.generation {
		tg.Fatalf("came back as %q in generation %d; was %q in %d", back.id, resp.Generation, old.id, old.generation)
	}
	fenced := func(when string) {
		tg.Helper()
		want(tg, when+": heartbeat of the old id", old.beat(), kerr.FencedInstanceID)
		_, c := old.sync(nil)
		want(tg, when+": SyncGroup of the old id", c, kerr.FencedInstanceID)
		want(tg, when+": commit of the old id", old.commit(topic, 1), kerr.FencedInstanceID)
	}
	fenced("in Stable")
	share, c := back.sync(nil)
	want(tg, "SyncGroup of the new id", c, nil)
	if share != "mine" {
		tg.Fatalf("the new id is assigned %q", share)
	}
	tg.hangUp()
	tg.own.Restart(tg)
	old.w, back.w = tg.coordinator(0, group), tg.coordinator(0, group)
	tg.eventually("the group is loaded", func() (bool, string) { c := back.beat(); return c == 0, code(c) })
	fenced("after a restart")
}

// codesOfJoin: a member that leaves in the middle of a rebalance makes JoinGroup answer nothing that clients do not know.
func codesOfJoin(tg *target) {
	group := tg.name("g")
	known := []int16{0, kerr.MemberIDRequired.Code, kerr.UnknownMemberID.Code, kerr.CoordinatorNotAvailable.Code, kerr.CoordinatorLoadInProgress.Code}
	first := tg.seat(group).settle()
	for range 20 {
		second := tg.seat(group)
		second.askID()
		if err := second.w.send(second.w.frame(second.joinRequest(5))); err != nil {
			tg.Fatal(err)
		}
		tg.eventually("the rebalance begins", func() (bool, string) { c := first.beat(); return c == kerr.RebalanceInProgress.Code, code(c) })
		away := tg.seat(group)
		away.id = second.id
		resp := first.w.do(first.joinRequest(5)).(*kmsg.JoinGroupResponse)
		c := first.joined(resp)
		answer, err := second.w.receive(second.joinRequest(5))
		if err != nil {
			tg.Fatal(err)
		}
		for _, c := range []int16{c, answer.(*kmsg.JoinGroupResponse).ErrorCode} {
			if !slices.Contains(known, c) {
				tg.Fatalf("JoinGroup answers %s", code(c))
			}
		}
		want(tg, "LeaveGroup", away.leave(), nil) // in CompletingRebalance
		c = first.joined(first.w.do(first.joinRequest(5)).(*kmsg.JoinGroupResponse))
		if !slices.Contains(known, c) {
			tg.Fatalf("JoinGroup answers %s", code(c))
		}
		first.join()
		_, c = first.sync(map[string]string{first.id: "mine"})
		want(tg, "SyncGroup", c, nil)
	}
}

func memberWithNothing(tg *target) {
	group := tg.name("g")
	a := tg.seat(group).settle()
	b := tg.seat(group)
	b.askID()
	if err := b.w.send(b.w.frame(b.joinRequest(5))); err != nil {
		tg.Fatal(err)
	}
	tg.eventually("the rebalance begins", func() (bool, string) { c := a.beat(); return c == kerr.RebalanceInProgress.Code, code(c) })
	resp := a.join()
	answer, err := b.w.receive(b.joinRequest(5))
	if err != nil {
		tg.Fatal(err)
	}
	want(tg, "JoinGroup of the second", b.joined(answer.(*kmsg.JoinGroupResponse)), nil)
	leader, other := a, b
	if resp.LeaderID == b.id {
		leader, other = b, a
	}
	_, c := leader.sync(map[string]string{leader.id: "all of it"})
	want(tg, "SyncGroup of the leader", c, nil)
	share, c := other.sync(nil)
	want(tg, "SyncGroup of the other", c, nil)
	if share != "" {
		tg.Fatalf("a member that the leader left out is assigned %q", share)
	}
}

// allOffsets asks for all of a group's offsets, in versions that ask for one group and for many.
func allOffsets(tg *target) {
	topic, group := tg.topic("t", 3), tg.name("g")
	w := tg.coordinator(0, group)
	req := commitRequest(group, topic, 0, 10, nil)
	for p := int32(1); p < 3; p++ {
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.LeaderEpoch = p, 10+int64(p), -1
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)
	}
	want(tg, "OffsetCommit", w.do(req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[2].ErrorCode, nil)
	all := map[int32]int64{0: 10, 1: 11, 2: 12}
	for _, version := range []int16{2, 7, 8, 9} {
		got := map[int32]int64{}
		ask := kmsg.NewPtrOffsetFetchRequest()
		ask.Version, ask.Group = version, group
		if version >= 8 {
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group = group
			ask.Groups = append(ask.Groups, g)
		}
		resp := w.do(ask).(*kmsg.OffsetFetchResponse)
		for _, rt := range resp.Topics {
			for _, p := range rt.Partitions {
				got[p.Partition] = p.Offset
			}
		}
		for _, g := range resp.Groups {
			for _, rt := range g.Topics {
				for _, p := range rt.Partitions {
					got[p.Partition] = p.Offset
				}
			}
		}
		if !maps.Equal(got, all) {
			tg.Fatalf("version %d: all offsets are %v, want %v", version, got, all)
		}
	}
	twice := kmsg.NewPtrOffsetFetchRequest()
	twice.Version, twice.Group = 7, group
	rt := kmsg.NewOffsetFetchRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{1, 1, 0}
	twice.Topics = append(twice.Topics, rt, rt)
	for _, rt := range w.do(twice).(*kmsg.OffsetFetchResponse).Topics {
		for _, p := range rt.Partitions {
			if p.ErrorCode != 0 || p.Offset != all[p.Partition] {
				tg.Fatalf("asked for twice: %+v", p)
			}
		}
	}
}

// groupIDsAgain makes and deletes groups under the same ids; what is loaded after a restart is the last of them.
func groupIDsAgain(tg *target) {
	topic := tg.topic("t", 1)
	for round := range int64(5) {
		for i := range 4 {
			group := tg.name(fmt.Sprint("g", i))
			tg.commitOffset(group, topic, 100*round+int64(i), nil)
			if round < 4 {
				tg.deleteGroup(group)
			}
		}
	}
	for range 2 {
		tg.hangUp()
		tg.own.Restart(tg)
		for i := range 4 {
			if p := tg.committed(tg.name(fmt.Sprint("g", i)), topic, 0); p.Offset != 400+int64(i) {
				tg.Fatalf("group %d has offset %d after a restart", i, p.Offset)
			}
		}
	}
}

func leavingWhatIsNotThere(tg *target) {
	group := tg.name("g")
	pending := tg.seat(group)
	pending.askID()
	want(tg, "LeaveGroup of an id that was given out", pending.leave(), nil)
	want(tg, "LeaveGroup once more", pending.leave(), kerr.UnknownMemberID)
	old := tg.seat(group)
	want(tg, "JoinGroup 0", old.joined(old.w.do(old.joinRequest(0)).(*kmsg.JoinGroupResponse)), nil)
	if d := tg.described(group); len(d.Members) != 1 || d.Members[0].MemberID != old.id {
		tg.Fatalf("the group has %+v", d.Members)
	}
}

// commitsInOrder sends a thousand commits on one connection without waiting: the last one counts.
func commitsInOrder(tg *target) {
	topic, group := tg.topic("t", 1), tg.name("g")
	w := tg.coordinator(0, group)
	const n, atOnce = 1000, 100
	for from := 1; from <= n; from += atOnce {
		for i := from; i < from+atOnce; i++ {
			if err := w.send(w.frame(commitRequest(group, topic, 0, int64(i), nil))); err != nil {
				tg.Fatal(err)
			}
		}
		for range atOnce {
			resp, err := w.receive(commitRequest(group, topic, 0, 0, nil))
			if err != nil {
				tg.Fatal(err)
			}
			want(tg, "OffsetCommit", resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode, nil)
		}
	}
	if p := tg.committed(group, topic, 0); p.Offset != n {
		tg.Fatalf("the committed offset is %d, the last one sent was %d", p.Offset, n)
	}
}

func commitsAroundARebalance(tg *target) {
	topic, group := tg.topic("t", 1), tg.name("g")
	a := tg.seat(group).settle()
	want(tg, "commit in Stable", a.commit(topic, 5), nil)
	b := tg.seat(group)
	b.askID()
	if err := b.w.send(b.w.frame(b.joinRequest(5))); err != nil {
		tg.Fatal(err)
	}
	tg.eventually("the rebalance begins", func() (bool, string) { c := a.beat(); return c == kerr.RebalanceInProgress.Code, code(c) })
	want(tg, "commit in PreparingRebalance", a.commit(topic, 6), nil)
	old := *a
	a.join()
	if _, err := b.w.receive(b.joinRequest(5)); err != nil {
		tg.Fatal(err)
	}
	want(tg, "commit in CompletingRebalance", a.commit(topic, 7), kerr.RebalanceInProgress)
	want(tg, "commit of the old generation", old.commit(topic, 1), kerr.IllegalGeneration)
	if p := tg.committed(group, topic, 0); p.Offset != 6 {
		tg.Fatalf("the committed offset is %d, want 6", p.Offset)
	}
}

func offsetBelowTheLogStart(tg *target) {
	topic, group := tg.topic("t", 1), tg.name("g")
	w := tg.leader(topic, 0)
	for range 10 {
		want(tg, "Produce", tg.produce(w, topic, plain("v")).ErrorCode, nil)
	}
	tg.commitOffset(group, topic, 3, nil)
	tg.deleteRecords(topic, 8)
	if p := tg.committed(group, topic, 0); p.Offset != 3 {
		tg.Fatalf("the committed offset is %d, want 3", p.Offset)
	}
	want(tg, "Fetch at the committed offset", tg.fetch(w, topic, 3, false, 1<<20).ErrorCode, kerr.OffsetOutOfRange)
	if start, _ := tg.offset(topic, 0, -2, false); start != 8 {
		tg.Fatalf("the log starts at %d", start)
	}
}

// membersOfADeadBroker: members that nobody speaks for after a crash are gone when their sessions are over.
func membersOfADeadBroker(tg *target) {
	topic, group := tg.topic("t", 1), tg.name("g")
	s := tg.seat(group)
	s.sessionMs = 300
	s.settle()
	want(tg, "commit", s.commit(topic, 4), nil)
	tg.hangUp()
	tg.own.Crash(tg, 1)
	tg.eventually("the member expires", func() (bool, string) {
		d := tg.described(group)
		return d.State == "Empty" && len(d.Members) == 0, fmt.Sprintf("%s with %d members", d.State, len(d.Members))
	})
	if p := tg.committed(group, topic, 0); p.Offset != 4 {
		tg.Fatalf("the committed offset is %d after the crash", p.Offset)
	}
	tg.seat(group).settle()
}

func transactionalCommitsAreFenced(tg *target) {
	topic, group := tg.topic("t", 1), tg.name("g")
	s := tg.seat(group).settle()
	x := tg.txn(2, "x").init()
	try := func(member string, generation int32) int16 {
		tg.Helper()
		req := x.offsetsRequest(5, group, topic, 5)
		req.MemberID, req.Generation = member, generation
		var c int16
		tg.eventually("TxnOffsetCommit", func() (bool, string) {
			c = s.w.do(req).(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
			return !retriable(c), code(c)
		})
		return c
	}
	want(tg, "an old generation", try(s.id, s.generation-1), kerr.IllegalGeneration)
	want(tg, "a stranger", try("nobody", s.generation), kerr.UnknownMemberID)
	want(tg, "the current one in Stable", try(s.id, s.generation), nil)
	s.join() // CompletingRebalance
	want(tg, "the current one in CompletingRebalance", try(s.id, s.generation), nil)
	want(tg, "the one before", try(s.id, s.generation-1), kerr.IllegalGeneration)
	x.commit()
	if p := tg.committed(group, topic, 0); p.Offset != 5 {
		tg.Fatalf("the committed offset is %d", p.Offset)
	}
}

// deletedOffsetsStayDeleted deletes a group, or one of its offsets, while a transaction has offsets for it: its commit brings nothing back.
func deletedOffsetsStayDeleted(tg *target, version int) {
	topic := tg.topic("t", 2)
	for _, whole := range []bool{true, false} {
		group := tg.name(fmt.Sprint("g", whole))
		x := tg.txn(version, fmt.Sprint("x", whole)).init()
		tg.commitOffset(group, topic, 5, nil)
		if version == 1 {
			x.addOffsets(group)
		}
		x.retry("TxnOffsetCommit", func() int16 { return x.offsets(int16(2*version+1), group, topic, 10) })
		if whole {
			tg.deleteGroup(group)
		} else {
			req := kmsg.NewPtrOffsetDeleteRequest()
			req.Group = group
			rt := kmsg.NewOffsetDeleteRequestTopic()
			rt.Topic = topic
			for p := range int32(2) { // of the second there is none
				rp := kmsg.NewOffsetDeleteRequestTopicPartition()
				rp.Partition = p
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
			resp := tg.coordinator(0, group).do(req).(*kmsg.OffsetDeleteResponse)
			want(tg, "OffsetDelete", resp.ErrorCode, nil)
			for _, p := range resp.Topics[0].Partitions {
				want(tg, "OffsetDelete of a partition", p.ErrorCode, nil)
			}
		}
		x.commit()
		if p := tg.committed(group, topic, 0); p.Offset != -1 {
			tg.Fatalf("whole group %v: after the commit of the transaction there is offset %d", whole, p.Offset)
		}
	}
}

// oldVersionsBesideStaticMembers: a group of a static member and one that joins in the first versions comes to a generation.
func oldVersionsBesideStaticMembers(tg *target) {
	for _, version := range []int16{0, 1, 2, 4} {
		group, name := tg.name(fmt.Sprint("g", version)), "a"
		a := tg.seat(group)
		a.instance = &name
		a.settle()
		b := tg.seat(group)
		if version == 4 {
			b.askID()
		}
		if err := b.w.send(b.w.frame(b.joinRequest(version))); err != nil {
			tg.Fatal(err)
		}
		tg.eventually("the rebalance begins", func() (bool, string) { c := a.beat(); return c == kerr.RebalanceInProgress.Code, code(c) })
		a.join()
		answer, err := b.w.receive(b.joinRequest(version))
		if err != nil {
			tg.Fatal(err)
		}
		want(tg, fmt.Sprint("JoinGroup ", version), b.joined(answer.(*kmsg.JoinGroupResponse)), nil)
		if a.generation != b.generation {
			tg.Fatalf("version %d: generations %d and %d", version, a.generation, b.generation)
		}
	}
}

// nothingIsEmptyWhileItLoads: from its first answers on a broker that has started anew lists all groups and tells their offsets, or says
// that it does not know yet.
func nothingIsEmptyWhileItLoads(tg *target) {
	topic := tg.topic("t", 1)
	const n = 40
	group := func(i int) string { return tg.name(fmt.Sprintf("g%02d", i)) }
	for i := range n {
		tg.commitOffset(group(i), topic, int64(100+i), nil)
	}
	tg.hangUp()
	tg.own.Restart(tg)
	w := tg.seed()
	tg.eventually("the list of groups", func() (bool, string) {
		resp := w.do(kmsg.NewPtrListGroupsRequest()).(*kmsg.ListGroupsResponse)
		if resp.ErrorCode != 0 {
			if !retriable(resp.ErrorCode) || len(resp.Groups) > 0 {
				tg.Fatalf("%s with %d groups", code(resp.ErrorCode), len(resp.Groups))
			}
			return false, code(resp.ErrorCode)
		}
		if len(resp.Groups) != n {
			tg.Fatalf("%d groups are listed, there are %d", len(resp.Groups), n)
		}
		return true, ""
	})
	tg.hangUp()
	tg.own.Restart(tg)
	for i := range n {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.Group = 7, group(i)
		rt := kmsg.NewOffsetFetchRequestTopic()
		rt.Topic, rt.Partitions = topic, []int32{0}
		req.Topics = append(req.Topics, rt)
		w := tg.seed()
		tg.eventually("OffsetFetch", func() (bool, string) {
			resp := w.do(req).(*kmsg.OffsetFetchResponse)
			if resp.ErrorCode != 0 {
				return false, code(resp.ErrorCode)
			}
			row := resp.Topics[0].Partitions[0]
			if row.ErrorCode == 0 && row.Offset != int64(100+i) {
				tg.Fatalf("group %d has offset %d", i, row.Offset)
			}
			return row.ErrorCode == 0, code(row.ErrorCode)
		})
	}
}
