package api

import (
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/broker/internal/replicas"
	"github.com/millrace/millrace/core/record"
)

// Produce: versions 3 to 13 (advertised from 0, see produceAdvertisedMin).
//
// Version 9 is flexible, 8 adds per-record errors, 12 adds partitions to the
// transaction on its own (KIP-890), 13 names topics by id. The codecs are written
// by hand: record bytes stay in the request's frame until the partition has
// written them, and nothing is allocated per record.
//
// acks=1 is answered when the batches are in the page cache, acks=-1 when they
// are durable, acks=0 never: a failure then closes the connection, which is all
// that such a producer can notice.
//
// Errors of the whole request, given for every partition:
//   - INVALID_REQUIRED_ACKS: acks is not -1, 0 or 1
//   - NOT_ENOUGH_REPLICAS: acks=-1 and min.insync.replicas of the topic is above 1
//   - TRANSACTIONAL_ID_AUTHORIZATION_FAILED: transactional batches without a
//     transactional id, or without WRITE on it
//   - INVALID_PRODUCER_ID_MAPPING: transactional batches of two producers
//
// Errors of one partition; the others succeed all the same:
//   - TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
//   - INVALID_TOPIC_EXCEPTION: the topic is internal and the client is not
//     "__admin_client"
//   - UNSUPPORTED_COMPRESSION_TYPE: zstd below version 7
//   - INVALID_RECORD: null records (Kafka 4.4 never answers those), no batch, more
//     than one, an old format, and all that record.Validate finds
//   - CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_TIMESTAMP
//   - INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE,
//     TRANSACTION_ABORTABLE (from version 11): the producer's state forbids it
//   - UNKNOWN_PRODUCER_ID (versions 5 to 11): its transaction was aborted by its timeout
//   - NOT_ENOUGH_REPLICAS: the transaction coordinator can not say yet; clients
//     retry (KAFKA-16386)
//   - KAFKA_STORAGE_ERROR: the disk
func serveProduce(s *Server, c *Call, body []byte, answer func(*listener.Answer)) error {
	p := produces.Get().(*produce)
	p.s, p.c, p.answer = s, c, answer
	if err := p.decode(body); err != nil {
		p.free()
		return err
	}
	p.pending.Store(1) // held by this goroutine until every row has been looked at
	if code := p.refuse(); code != 0 {
		for i := range p.rows {
			p.rows[i].code = code
		}
	} else if p.transactional {
		if s.turns.take(p.producer, p) {
			p.takeTurn()
		}
		return nil
	} else {
		p.appendAll()
		p.letGo()
	}
	p.settled()
	return nil
}

// produce is one Produce request under way. Rows are written by whoever handles
// the row and read when pending is 0.
type produce struct {
	s      *Server
	c      *Call
	answer func(*listener.Answer)

	txnID []byte // nil is null
	acks  int16

	transactional bool  // some batch is, and producer is whose; set by refuse
	producer      int64 // see turns

	topics  []produceTopic
	rows    []produceRow
	pending atomic.Int32 // rows that are not decided, and 1 while they are handed out
}

// produceTopic is one topic of the request: rows [first, end).
type produceTopic struct {
	known      *replicas.Topic // nil if there is none
	name       string
	id         [16]byte
	first, end int
}

// produceRow is one partition of the request and its result.
type produceRow struct {
	topic     int
	index     int32
	records   []byte // in the frame; nil is null
	partition *partition.Partition
	guard     partition.Guard
	verify    bool

	code     int16
	reason   string
	errors   []record.RecordError
	appended partition.Appended
}

var produces = sync.Pool{New: func() any { return new(produce) }}

func (p *produce) free() {
	clear(p.topics)
	clear(p.rows)
	p.s, p.c, p.answer, p.txnID, p.transactional = nil, nil, nil, nil, false
	p.topics, p.rows = p.topics[:0], p.rows[:0]
	produces.Put(p)
}

func (p *produce) decode(body []byte) error {
	version := p.c.Version
	d := decoder{src: body, flexible: version >= 9}
	p.txnID = d.str()
	p.acks = d.i16()
	d.i32() // timeout: a single node waits for its own disk only
	for n := d.array(); n > 0 && !d.bad; n-- {
		t := produceTopic{first: len(p.rows)}
		if version >= 13 {
			t.id = d.id()
			t.known = p.s.Replicas.TopicByID(t.id)
		} else {
			name := d.str()
			if t.known = p.s.Replicas.Topic(name); t.known == nil {
				t.name = string(name)
			}
			d.bad = d.bad || name == nil
		}
		if t.known != nil {
			t.name = t.known.Name // the table's string: a known name costs nothing
		}
		for m := d.array(); m > 0 && !d.bad; m-- {
			p.rows = append(p.rows, produceRow{topic: len(p.topics), index: d.i32(), records: d.bytes()})
			d.tags(nil)
		}
		d.tags(nil)
		t.end = len(p.rows)
		p.topics = append(p.topics, t)
	}
	d.tags(nil)
	return d.err("Produce", version)
}

// refuse applies the rules of the whole request; 0 means that it may go on.
func (p *produce) refuse() int16 {
	if p.acks < -1 || p.acks > 1 {
		return kerr.InvalidRequiredAcks.Code
	}
	transactional := false
	var id int64
	var epoch int16
	for i := range p.rows {
		b, err := record.Single(p.rows[i].records)
		if err != nil || !b.Attributes().Transactional() {
			continue
		}
		if transactional && (b.ProducerID() != id || b.ProducerEpoch() != epoch) {
			return kerr.InvalidProducerIDMapping.Code
		}
		transactional, id, epoch = true, b.ProducerID(), b.ProducerEpoch()
	}
	p.transactional, p.producer = transactional, id
	if !transactional {
		return 0
	}
	if p.txnID == nil || !p.s.Authorize(p.c.Principal, kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTransactionalId, string(p.txnID)) {
		return kerr.TransactionalIDAuthorizationFailed.Code
	}
	return 0
}

// adminClient is the client id that may write to internal topics, as in Kafka.
const adminClient = "__admin_client"

// takeTurn carries out a transactional request that has its producer's turn. The
// turn ends when the batches are appended or refused, or with the coordinator's
// answer.
func (p *produce) takeTurn() {
	if !p.appendAll() {
		p.endTurn()
	}
}

// endTurn lets the producer's next request go on.
func (p *produce) endTurn() {
	p.letGo()
	next := p.s.turns.pass(p.producer)
	p.settled()
	if next != nil {
		next.takeTurn()
	}
}

// letGo gives the frame back when every batch is in the log or refused: what waits
// for the disk needs the records no more, and the next requests of a producer at
// full speed come into the same memory. The caller still holds a pending part.
func (p *produce) letGo() {
	p.txnID = nil
	for i := range p.rows {
		p.rows[i].records = nil
	}
	p.c.frame.Release()
}

// appendAll appends every row that needs no question to the coordinator, then
// asks for those that do; asked says that its answer ends the request's turn.
func (p *produce) appendAll() (asked bool) {
	verify := false
	for i := range p.rows {
		r := &p.rows[i]
		b := p.prepare(r)
		if r.code != 0 {
			continue
		}
		if b.Attributes().Transactional() && !r.partition.TxnOpen(b.ProducerID(), b.ProducerEpoch()) {
			r.guard = r.partition.BeginVerify(b.ProducerID(), b.ProducerEpoch(), b.BaseSequence())
			r.verify, verify = true, true
			continue
		}
		p.append(r)
	}
	if verify {
		p.askCoordinator()
	}
	return verify
}

// prepare finds the row's partition and its one batch.
func (p *produce) prepare(r *produceRow) record.Batch {
	t := &p.topics[r.topic]
	if t.known == nil && p.c.Version >= 13 {
		r.code = kerr.UnknownTopicID.Code
		return nil
	}
	if !p.s.Authorize(p.c.Principal, kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic, t.name) {
		r.code = kerr.TopicAuthorizationFailed.Code
		return nil
	}
	if t.known == nil {
		r.code = kerr.UnknownTopicOrPartition.Code
		return nil
	}
	if t.known.Internal && p.c.ClientID != adminClient {
		r.code = kerr.InvalidTopicException.Code
		return nil
	}
	var err error
	if r.partition, err = t.known.Partition(r.index); err != nil {
		r.fail(err)
		return nil
	}
	if p.acks == -1 && t.known.MinInSync > 1 {
		r.code, r.reason = kerr.NotEnoughReplicas.Code, "this node is the only replica, min.insync.replicas asks for more"
		return nil
	}
	if r.records == nil {
		r.code, r.reason = kerr.InvalidRecord.Code, "the records are null"
		return nil
	}
	b, err := record.Single(r.records)
	if err != nil {
		r.fail(err)
		return nil
	}
	if p.c.Version < 7 && b.Attributes().Codec() == record.Zstd {
		r.code = kerr.UnsupportedCompressionType.Code
		return nil
	}
	if c := t.known.Codec; c != nil && b.Attributes().Codec() != *c && len(b) <= t.known.MaxMessageBytes {
		b = repack(b, *c, t.known.Level)
	}
	r.records = b
	return b
}

// append writes one row's batch and, for acks=-1, waits for it.
func (p *produce) append(r *produceRow) {
	var err error
	r.appended, err = r.partition.Append(r.records, partition.AppendOptions{
		Origin: partition.OriginClient, RequestVersion: p.c.Version, Guard: r.guard,
	})
	r.records = nil
	switch {
	case err != nil:
		r.fail(err)
		if r.code == kerr.ConcurrentTransactions.Code {
			r.code = verifyCode(r.code, p.c.Version)
		}
	case p.acks == -1:
		p.pending.Add(1)
		done := func(err error) {
			if err != nil {
				r.fail(err)
			}
			p.settled()
		}
		if p.transactional { // a decision may follow, which is synced in every mode: it must find its records
			r.partition.AwaitDurable(r.appended.LastOffset, done)
		} else {
			r.partition.Await(r.appended.LastOffset, done)
		}
	}
}

// askCoordinator asks the transaction coordinator for all rows of a transaction
// that is not open on their partitions: from version 12 on it adds the
// partitions, before it only says whether the client did.
func (p *produce) askCoordinator() {
	var rows []*produceRow
	var parts []coord.TopicPartition
	var id int64
	var epoch int16
	for i := range p.rows {
		if r := &p.rows[i]; r.verify {
			b := record.Batch(r.records)
			id, epoch = b.ProducerID(), b.ProducerEpoch()
			rows = append(rows, r)
			parts = append(parts, coord.TopicPartition{Topic: p.topics[r.topic].name, Partition: r.index})
		}
	}
	p.s.Txns.AddPartitions(string(p.txnID), id, epoch, parts, p.c.Version < 12, func(codes []int16) {
		for i, r := range rows {
			if code := codes[i]; code != 0 {
				r.code = verifyCode(code, p.c.Version)
				r.appended.LogStartOffset = r.partition.Marks().LogStart
				continue
			}
			p.append(r)
		}
		p.endTurn()
	})
}

// verifyCode is what a producer is told of the coordinator's refusal: codes that
// it knows to retry, and what its version allows.
func verifyCode(code, version int16) int16 {
	switch code {
	case kerr.ConcurrentTransactions.Code, kerr.NetworkException.Code, kerr.CoordinatorLoadInProgress.Code,
		kerr.CoordinatorNotAvailable.Code, kerr.NotCoordinator.Code:
		return kerr.NotEnoughReplicas.Code
	case kerr.ProducerFenced.Code:
		return kerr.InvalidProducerEpoch.Code
	case kerr.UnknownProducerID.Code:
		// Aborted by its timeout. Kafka says INVALID_PRODUCER_EPOCH, which is the end of
		// a librdkafka producer; on this one all clients abort and go on. Without the log
		// start offset next to it, which version 5 brought, Java clients repeat the batch.
		if version < 5 {
			return kerr.InvalidProducerEpoch.Code
		}
	case kerr.TransactionAbortable.Code, kerr.InvalidTxnState.Code:
		switch {
		case version >= 12 && code == kerr.TransactionAbortable.Code:
			return kerr.InvalidProducerEpoch.Code // aborted by its timeout; said as Kafka says it
		case version < 11:
			return kerr.InvalidTxnState.Code
		}
		return kerr.TransactionAbortable.Code
	}
	return code
}

// fail records why the row's batch was not taken.
func (r *produceRow) fail(err error) {
	r.code, r.reason, r.errors = codeOf(err), err.Error(), recordErrors(err)
}

// settled counts one decided part of the request and answers after the last.
func (p *produce) settled() {
	if p.pending.Add(-1) > 0 {
		return
	}
	p.c.frame.Release()
	answer, a := p.answer, p.response()
	p.free()
	answer(a)
}
