package task

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestDecisionSteps(t *testing.T) {
	for _, c := range []struct {
		d     Decision
		text  string
		steps string // of attempts 1 to 6
	}{
		{Fail(), "fail", "FFFFFF"},
		{Decision{}, "fail", "FFFFFF"},
		{Skip(), "skip", "SSSSSS"},
		{DeadLetter("dead"), "dead letter to dead", "DDDDDD"},
		{Retry(2, time.Second), "retry 2 times", "RRFFFF"},
		{Retry(-1, time.Second), "retry -1 times", "FFFFFF"},
		{Retry(2, time.Second).Then(Skip()), "retry 2 times, then skip", "RRSSSS"},
		{Retry(2, time.Second).Then(Retry(3, time.Minute).Then(DeadLetter("x"))), "retry 2 times, then retry 3 times, then dead letter to x", "RRRRRD"},
		{Retry(-5, 0).Then(Retry(1, 0)), "retry -5 times, then retry 1 times", "RFFFFF"},
	} {
		got := ""
		for attempt := 1; attempt <= 6; attempt++ {
			switch s := c.d.At(attempt); {
			case s.Again:
				got += "R"
			case s.Skip:
				got += "S"
			case s.DeadLetter != "":
				got += "D"
			default:
				got += "F"
			}
		}
		if got != c.steps || c.d.String() != c.text {
			t.Errorf("%v: steps %s, want %s; text want %s", c.d, got, c.steps, c.text)
		}
	}
	if p := Retry(2, time.Second).Then(Retry(1, time.Minute)).At(3).Pause; p != time.Minute {
		t.Errorf("pause of the second series is %v", p)
	}
}

func TestPanicUnwraps(t *testing.T) {
	cause := errors.New("cause")
	f := &Failure{Phase: Process, Node: "n", Topic: "t", Partition: 2, Offset: 7, Attempt: 3, Err: &Panic{Value: fmt.Errorf("x: %w", cause)}}
	if !errors.Is(f, cause) {
		t.Error("the cause of a panic is hidden")
	}
	if want := "process at node n, record t-2@7 (attempt 3): panic: x: cause"; f.Error() != want {
		t.Errorf("error is %q, want %q", f, want)
	}
	if (&Panic{Value: "text"}).Unwrap() != nil {
		t.Error("a panic with a text unwraps to something")
	}
}
