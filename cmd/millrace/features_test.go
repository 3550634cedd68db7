package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFeatures(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	at := []string{"--brokers", s.addr, "features"}
	level := func() (int16, int64) {
		t.Helper()
		for line := range strings.Lines(ok(t, "", append(at, "list", "-o", "json")...)) {
			var row shownFeature
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			if row.Feature == "transaction.version" && row.SupportedMin == 0 && row.SupportedMax == 2 {
				return row.Level, row.Epoch
			}
		}
		t.Fatal("transaction.version is not listed")
		return 0, 0
	}
	before, epoch := level()
	if before != 2 {
		t.Errorf("a new cluster is at level %d", before)
	}
	for _, c := range []struct {
		line, want string
		level      int16
	}{
		{"downgrade transaction.version=1 --dry-run", "transaction.version could be set to level 1\n", 2},
		{"downgrade transaction.version=1", "transaction.version is at level 1\n", 1},
		{"downgrade --unsafe transaction.version=0", "transaction.version is at level 0\n", 0},
		{"upgrade transaction.version=2", "transaction.version is at level 2\n", 2},
	} {
		if out := ok(t, "", append(at, strings.Fields(c.line)...)...); out != c.want {
			t.Errorf("features %s: %q, want %q", c.line, out, c.want)
		}
		now, e := level()
		if now != c.level || e < epoch {
			t.Errorf("after features %s: level %d, epoch %d after %d", c.line, now, e, epoch)
		}
		epoch = e
	}
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"upgrade transaction.version=3", "INVALID_UPDATE_VERSION", 1},
		{"upgrade transaction.version=1", "no downgrade (INVALID_UPDATE_VERSION)", 1},
		{"downgrade nonsense=1", "no such feature (INVALID_UPDATE_VERSION)", 1},
		{"upgrade transaction.version", "is not of the form FEATURE=LEVEL", 2},
		{"upgrade", "needs FEATURE=LEVEL", 2},
	} {
		if o := execute(t, "", append(at, strings.Fields(c.line)...)...); o.code != c.code || !strings.Contains(o.errout, c.want) {
			t.Errorf("features %s: exit code %d, %q; want %d, %q", c.line, o.code, o.errout, c.code, c.want)
		}
	}
}
