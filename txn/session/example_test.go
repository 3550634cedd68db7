package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/txn/session"
)

// Orders come in, invoices go out, exactly once: whatever happens between the
// first Poll and the end of Commit, an invoice is either there and its order is
// done, or neither.
func Example() {
	ctx := context.Background()
	b, err := broker.Start(ctx, broker.Config{GroupInitialRebalanceDelay: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	if err := order(ctx, b, "tea", "rice"); err != nil {
		log.Fatal(err)
	}

	s, err := session.Open(ctx, session.Options{
		ClusterOptions:  session.ClusterOptions{Seeds: b.Seeds(), Dial: b.Dial},
		Group:           "invoicing",
		TransactionalID: "invoicing-1",
		Topics:          []string{"orders"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close(ctx)
	for done := 0; done < 2; {
		orders, err := s.Poll(ctx)
		if err != nil {
			log.Fatal(err)
		}
		n := 0
		for o := range orders {
			invoice := &session.Record{Topic: "invoices", Partition: session.ByKey, Key: o.Key, Value: bytes.ToUpper(o.Value)}
			if err := s.Send(ctx, invoice); err != nil {
				log.Fatal(err)
			}
			n++
		}
		err = s.Commit(ctx)
		switch {
		case err == nil:
			done += n
		case errors.Is(err, session.ErrAborted), errors.Is(err, session.ErrUnknownOutcome):
			// The next Poll brings again what was not committed.
		default:
			log.Fatal(err)
		}
	}
	fmt.Println("two orders invoiced")
	// Output: two orders invoiced
}

// order makes the topics and fills the first one.
func order(ctx context.Context, b *broker.Broker, what ...string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.AllowAutoTopicCreation())
	if err != nil {
		return err
	}
	defer client.Close()
	for i, w := range what {
		r := &kgo.Record{Topic: "orders", Key: fmt.Append(nil, i), Value: []byte(w)}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			return err
		}
	}
	return client.ProduceSync(ctx, &kgo.Record{Topic: "invoices", Value: []byte("header")}).FirstErr()
}

// A source that keeps its position in the log needs the producer alone: data
// and position are committed together, and a second instance of the source
// fences the first.
func ExampleProducer() {
	ctx := context.Background()
	b, err := broker.Start(ctx, broker.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	if err := order(ctx, b); err != nil {
		log.Fatal(err)
	}
	c, err := session.Connect(ctx, session.ClusterOptions{Seeds: b.Seeds(), Dial: b.Dial})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	open := func() *session.Producer {
		p, err := c.NewProducer(ctx, session.ProducerOptions{TransactionalID: "source"})
		if err != nil {
			log.Fatal(err)
		}
		return p
	}
	send := func(p *session.Producer, line string) error {
		if err := p.Send(ctx, &session.Record{Topic: "invoices", Partition: session.ByKey, Value: []byte(line)}, nil); err != nil {
			return err
		}
		return p.Commit(ctx, nil, session.Generation{})
	}
	first := open()
	fmt.Println("first:", send(first, "line 1"))
	second := open()
	fmt.Println("second:", send(second, "line 2"))
	fmt.Println("first is fenced:", errors.Is(send(first, "line 2"), session.ErrFenced))
	// Output:
	// first: <nil>
	// second: <nil>
	// first is fenced: true
}
