package coord

import (
	"testing"
	"time"

	"github.com/millrace/millrace/core/clock"
)

// jumpy is a clock that can be set; its timers do not follow.
type jumpy struct {
	*clock.Manual
	skew time.Duration
}

func (j *jumpy) Now() time.Time         { return j.Manual.Now().Add(j.skew) }
func (j *jumpy) Elapsed() time.Duration { return time.Duration(j.Manual.Now().UnixNano()) }

// TestClockIsSet: whichever way the clock is set, a deadline that is set then is kept within a second. Before there was a steady
// time a clock that was set back made it late by as much, and so did a timer that ran to an earlier deadline while it was.
func TestClockIsSet(t *testing.T) {
	for name, jumps := range map[string][2]time.Duration{
		"back while the deadline is waited for":  {0, -time.Hour},
		"ahead while the deadline is waited for": {0, time.Hour},
		"back before, and right again after":     {-time.Hour, 0},
		"ahead before, and right again after":    {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStage(t, &fakeLog{auto: true})
			j := &jumpy{Manual: st.clock}
			st.rt.o.Clock, st.s.time = j, clock.NewSteady(j)
			st.start()
			deadlineIn := func(ms int64) {
				t.Helper()
				got(t, st.do(func(m *words, nowMs int64, to Token) Output {
					m.deadline = nowMs + ms
					return Output{Replies: []Reply{{To: to}}}
				}))
			}
			deadlineIn(10_000)
			j.skew = jumps[0]
			st.clock.Advance(5 * time.Second) // a timer may be armed anew under this clock
			j.skew = jumps[1]
			deadlineIn(3000)
			st.clock.Advance(3*time.Second + longestSleep)
			want := "tick."
			if jumps[0] > 0 { // the first one came early
				want += "tick."
			}
			if s := st.state(); s != want {
				t.Fatalf("state %q, want %q", s, want)
			}
		})
	}
}

// TestTimeOutlivesALoad: deadlines in the log are of the time that wrote them.
func TestTimeOutlivesALoad(t *testing.T) {
	log := &fakeLog{auto: true}
	st := newStage(t, log).start()
	st.clock.Advance(time.Hour)
	got(t, st.do(func(_ *words, _ int64, to Token) Output {
		return Output{Records: say("x"), Replies: []Reply{{To: to}}}
	}))
	again := newStage(t, log).start() // its clock is an hour behind
	got(t, again.do(func(_ *words, nowMs int64, to Token) Output {
		if want := st.clock.Now().UnixMilli(); nowMs < want {
			t.Errorf("it is %d, the log says %d", nowMs, want)
		}
		return Output{Replies: []Reply{{To: to}}}
	}))
}
