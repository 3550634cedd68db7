package logdir

import "testing"

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"00000000000000000007.log":                                          Log,
		"00000000000000000007.timeindex":                                    TimeIndex,
		"00000000000000000007.snapshot":                                     Snapshot,
		"00000000000000000007.log.cleaned":                                  Cleaned,
		"00000000000000000007.index.deleted":                                Deleted,
		"00000000000000000007.snapshot.tmp":                                 Temp,
		"00000000000000000007-00000000000000000019.swap":                    Swap,
		"leader-epoch-checkpoint":                                           Epochs,
		"leader-epoch-checkpoint.tmp":                                       Temp,
		"partition.metadata":                                                Metadata,
		"cleaner-offset-checkpoint":                                         Progress,
		"00000000000000000019-00000000000000000007.swap":                    "",
		"00000000000000000007.log.swap":                                     "", // Kafka's
		"00000000000000000007.log.old":                                      "",
		"0000000000000000007.log":                                           "",
		"+0000000000000000007.log":                                          "",
		"-0000000000000000007.log":                                          "",
		"99999999999999999999.log":                                          "",
		".tmp":                                                              Temp,
		"notes.txt":                                                         "",
		"00000000000000000007":                                              "",
		"00000000000000000007-00000000000000000019-0000000000000019.swap":   "",
		"00000000000000000007-00000000000000000019":                         "",
		"00000000000000000007.log.cleaned.deleted":                          Deleted,
		"00000000000000000007-00000000000000000019.swap.00000000000000.tmp": "",
	} {
		k, ok := KindOf(name)
		if ok != (want != "") || ok && k.Name != want {
			t.Errorf("%s: kind %q, %v, want %q", name, k.Name, ok, want)
		}
	}
	if base, end, ok := ParseSwap(SwapName(7, 19)); base != 7 || end != 19 || !ok {
		t.Errorf("a swap name comes back as %d to %d, %v", base, end, ok)
	}
	if offset, suffix, ok := Parse(Name(7, TxnSum)); offset != 7 || suffix != TxnSum || !ok {
		t.Errorf("a name comes back as %d %s, %v", offset, suffix, ok)
	}
}
