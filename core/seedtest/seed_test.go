package seedtest

import "testing"

func TestChoices(t *testing.T) {
	t.Setenv("MILLRACE_SOAK", "")
	t.Setenv("MILLRACE_SEED", "")
	if a, b := New(t), New(t); a != b {
		t.Errorf("%d, then %d, without a wish for fresh ones", a, b)
	}
	t.Run("another", func(s *testing.T) {
		if New(s) == New(t) {
			t.Error("two tests have the same seed")
		}
	})
	t.Setenv("MILLRACE_SOAK", "1")
	if a, b := New(t), New(t); a == b {
		t.Error("the long form repeats itself")
	}
	t.Setenv("MILLRACE_SEED", "7")
	if New(t) != 7 {
		t.Error("MILLRACE_SEED is not heard")
	}
}
