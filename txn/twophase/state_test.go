package twophase

import "testing"

// TestPreparedState: what Kafka's PreparedTxnState (kafka-clients 4.4.0) writes and reads.
func TestPreparedState(t *testing.T) {
	for _, c := range []struct {
		text  string
		id    int64
		epoch int16
		any   bool
	}{
		{"", -1, -1, false},
		{"0:0", 0, 0, true},
		{"4711:12", 4711, 12, true},
		{"9223372036854775807:32767", 1<<63 - 1, 32767, true},
	} {
		s, err := ParsePreparedState(c.text)
		if err != nil || s.Any() != c.any || s.ProducerID() != c.id || s.Epoch() != c.epoch || s.String() != c.text {
			t.Errorf("%q: %+v, %v", c.text, s, err)
		}
		if s != NewPreparedState(c.id, c.epoch) {
			t.Errorf("%q is not what its numbers make", c.text)
		}
	}
	for _, bad := range []string{":", "1", "1:", ":1", "1:2:3", "-1:0", "1:-1", "1:32768", "x:1", " 1:2", "9223372036854775808:0"} {
		if s, err := ParsePreparedState(bad); err == nil {
			t.Errorf("%q was read as %v", bad, s)
		}
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"7:1", "7:2", true},
		{"7:2", "7:2", false},
		{"7:3", "7:2", false},
		{"6:1", "7:2", false},
		{"7:1", "", false},
		{"", "7:1", false},
		{"a person", "7:1", false},
	} {
		if got := Older(c.a, c.b); got != c.want {
			t.Errorf("Older(%q, %q) = %t", c.a, c.b, got)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"TransactionalID": {},
		"128":             {TransactionalID: string(make([]byte, 129))},
		"100ms":           {TransactionalID: "a", Timeout: 1},
		"negative":        {TransactionalID: "a", Timeout: -1},
	} {
		if err := o.Validate(); err == nil {
			t.Errorf("%s: %+v is taken", name, o)
		}
	}
	if err := (Options{TransactionalID: "a"}).Validate(); err != nil {
		t.Error(err)
	}
}
