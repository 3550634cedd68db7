package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/twophase"
)

// never is a store that decides and whose program ends before it does.
type never struct{}

func (never) Claim(context.Context, string, string) (twophase.PreparedState, error) {
	return twophase.PreparedState{}, nil
}

func (never) Commit(_ context.Context, _, _ string, work func(struct{}) (twophase.PreparedState, error)) error {
	_, err := work(struct{}{})
	return err
}

var errGone = errors.New("gone")

// leavePrepared leaves a prepared transaction with one record behind and returns its program, which does not know yet.
func leavePrepared(t *testing.T, addr, id, topic, value string) *twophase.Committer[struct{}] {
	t.Helper()
	c, err := twophase.OpenStoreDecides(t.Context(), twophase.Brokers(addr), never{}, twophase.Options{
		TransactionalID: id,
		OnStep: func(s twophase.Step) error {
			if s == twophase.StepPrepared {
				return errGone
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	err = c.Do(t.Context(), func(tx *twophase.Txn[struct{}]) error {
		return tx.Send(t.Context(), session.Record{Topic: topic, Partition: 0, Value: []byte(value)})
	})
	if !errors.Is(err, errGone) {
		t.Fatal(err)
	}
	return c
}

func TestResolve(t *testing.T) {
	t.Parallel()
	s := serverAt(t, t.TempDir(), "127.0.0.1:0", "--transaction-two-phase-commit")
	at := []string{"--brokers", s.addr}
	ok(t, "", append(at, "topic", "create", "orders")...)
	resolve := func(flags string) []string {
		return append(at, append([]string{"txn", "resolve"}, strings.Fields(flags)...)...)
	}

	leavePrepared(t, s.addr, "first", "orders", "kept")
	ok(t, "behind\n", append(at, "produce", "orders")...)
	consume := append(at, "consume", "orders", "--from-beginning", "--max-messages", "3", "--idle", "300ms")
	if got := ok(t, "", consume...); got != "" {
		t.Fatalf("past a prepared transaction: %q", got)
	}
	list := ok(t, "", append(at, "txn", "list")...)
	if !regexp.MustCompile(`^first\tOngoing\tproducer \d+\topen for \d+s\ttwo-phase, no timeout\n$`).MatchString(list) {
		t.Errorf("txn list: %q", list)
	}
	described := ok(t, "", append(at, "txn", "describe", "first")...)
	state := regexp.MustCompile(`^first\tOngoing\tproducer (\d+) epoch (\d+)\ttimeout none \(two-phase\)\t`).FindStringSubmatch(described)
	if state == nil {
		t.Fatalf("txn describe: %q", described)
	}
	prepared := state[1] + ":" + state[2]
	for _, c := range []struct {
		code       int
		say, flags string
	}{
		{2, "either --commit or --abort", "first"},
		{2, "either --commit or --abort", "first --commit --abort"},
		{2, "PRODUCER:EPOCH", "first --commit --state one"},
		{2, "would commit transaction " + prepared + " of first on 1 partitions", "first --commit"},
		{2, "would abort transaction " + prepared, "first --abort --state " + prepared},
		{1, "the open transaction is " + prepared + ", not 99:0", "first --commit --state 99:0 --yes"},
		{1, "TRANSACTIONAL_ID_NOT_FOUND", "nobody --commit --yes"},
	} {
		if o := execute(t, "", resolve(c.flags)...); o.code != c.code || !strings.Contains(o.errout, c.say) {
			t.Errorf("txn resolve %s: exit code %d, %q; want %d and %q", c.flags, o.code, o.errout, c.code, c.say)
		}
	}
	if out := ok(t, "", resolve("first --commit --yes --state "+prepared)...); out != "committed transaction "+prepared+" of first on 1 partitions\n" {
		t.Errorf("commit: %q", out)
	}
	if got := ok(t, "", consume...); got != "kept\nbehind\n" {
		t.Errorf("after the commit: %q", got)
	}
	if o := execute(t, "", resolve("first --abort --yes")...); o.code != 1 || !strings.Contains(o.errout, "has no open transaction") {
		t.Errorf("a second time: exit code %d, %q", o.code, o.errout)
	}

	leavePrepared(t, s.addr, "second", "orders", "dropped")
	if out := ok(t, "", resolve("second --abort --yes")...); !strings.HasPrefix(out, "aborted transaction ") {
		t.Errorf("abort: %q", out)
	}
	ok(t, "last\n", append(at, "produce", "orders")...)
	if got := ok(t, "", consume...); got != "kept\nbehind\nlast\n" {
		t.Errorf("after the abort: %q", got)
	}
}

// TestResolveWithoutTwoPhase: a broker that does not take part can still abort.
func TestResolveWithoutTwoPhase(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	at := []string{"--brokers", s.addr}
	ok(t, "", append(at, "topic", "create", "orders")...)
	openTxn(t, s.addr, "plain", "orders")
	if o := execute(t, "", append(at, "txn", "resolve", "plain", "--commit", "--yes")...); o.code != 1 || !strings.Contains(o.errout, "transaction.two.phase.commit.enable") {
		t.Errorf("commit: exit code %d, %q", o.code, o.errout)
	}
	if out := ok(t, "", append(at, "txn", "resolve", "plain", "--abort", "--yes")...); !strings.HasPrefix(out, "aborted transaction ") {
		t.Errorf("abort: %q", out)
	}
}
