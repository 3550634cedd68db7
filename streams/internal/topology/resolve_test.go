package topology

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// chain is a → r1 → r2, with a third topic joined at the end.
func chain(joined bool) *Topology {
	t := &Topology{AppID: "x", Subs: []Sub{
		{Name: "r2", Sources: []Source{{Topic: "x-r2-repartition", Internal: true}}}, // listed first: the order must not matter
		{Name: "r1", Sources: []Source{{Topic: "x-r1-repartition", Internal: true}}, Sinks: []string{"x-r2-repartition"}},
		{Name: "a", Sources: []Source{{Topic: "a", Internal: false}, {Topic: "b", Internal: false}}, Sinks: []string{"x-r1-repartition"}},
	}, Internal: []InternalTopic{
		NewInternal("x", "r1", Repartition, "r1"), NewInternal("x", "r2", Repartition, "r2"), NewInternal("x", "s", Changelog, "r2"),
	}}
	if joined {
		t.Subs[0].Sources = append(t.Subs[0].Sources, Source{Topic: "t", Internal: false})
		t.Subs[0].Copartition = [][]string{{"t", "x-r2-repartition"}}
	}
	return t
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name          string
		topology      *Topology
		external      map[string]int32
		tasks, topics string
		err           string
	}{
		{"alone takes the writer's count", chain(false), map[string]int32{"a": 3, "b": 7},
			"map[a:7 r1:7 r2:7]", "map[x-r1-repartition:7 x-r2-repartition:7 x-s-changelog:7]", ""},
		{"joined takes the table's count", chain(true), map[string]int32{"a": 3, "b": 7, "t": 2},
			"map[a:7 r1:7 r2:2]", "map[x-r1-repartition:7 x-r2-repartition:2 x-s-changelog:2]", ""},
		{"missing topics", chain(true), map[string]int32{"a": 3},
			"", "", "source topic \"t\" of sub-topology \"r2\" does not exist\nsource topic \"b\" of sub-topology \"a\" does not exist"},
		{"counts differ", &Topology{Subs: []Sub{{Name: "a", Sources: []Source{{Topic: "a", Internal: false}, {Topic: "b", Internal: false}}, Copartition: [][]string{{"a", "b"}}}}},
			map[string]int32{"a": 1, "b": 2}, "", "", `sub-topology "a" joins topics that must have the same number of partitions: a has 1, b has 2`},
		{"circle", &Topology{Subs: []Sub{{Name: "r", Sources: []Source{{Topic: "r", Internal: true}}, Sinks: []string{"r"}}}},
			nil, "", "", `sub-topology "r": its repartition topics feed each other and nothing fixes their number of partitions`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.topology.Resolve(c.external)
			if err != nil || c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Fatalf("error is %v, want %s", err, c.err)
				}
				return
			}
			if fmt.Sprint(got.Tasks) != c.tasks || fmt.Sprint(got.Topics) != c.topics {
				t.Errorf("tasks %v, topics %v; want %s, %s", got.Tasks, got.Topics, c.tasks, c.topics)
			}
		})
	}
}

func TestInternalTopicsNeverExpireByRecordTime(t *testing.T) {
	r, c := NewInternal("x", "r", Repartition, ""), NewInternal("x", "c", Changelog, "")
	if want := map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "message.timestamp.type": "CreateTime"}; !maps.Equal(r.Config, want) {
		t.Errorf("repartition topic: %v", r.Config)
	}
	if c.Config["cleanup.policy"] != "compact" {
		t.Errorf("changelog: %v: anything but compact alone would lose old windows", c.Config)
	}
}

const before = `application shop

sub-topology in
  stream in (string, string) from topic in

stores
  words: rows (string, int64); on disk, changelog shop-words-changelog
  spend: rows (string, float64) in windows of 1m0s; on disk, changelog shop-spend-changelog

internal topics
  shop-by-user-repartition: repartition (string, main.Order)
  shop-spend-changelog: changelog
  shop-words-changelog: changelog
`

func TestCheckUpgrade(t *testing.T) {
	for _, c := range []struct {
		name string
		edit []string // pairs of old and new
		err  string
	}{
		{"same", nil, ""},
		{"moved to memory", []string{"words: rows (string, int64); on disk", "words: rows (string, int64); in memory"}, ""},
		{"a store less", []string{"  words: rows (string, int64); on disk, changelog shop-words-changelog\n", ""}, ""},
		{"a store more", []string{"stores\n", "stores\n  more: rows (string, int64); on disk\n"}, ""},
		{"renamed store", []string{"  words: ", "  in.count: "},
			"topology is no upgrade: store words is gone and in.count (rows (string, int64)) is new and would start empty; if it is the same, keep its name with As"},
		{"replaced by another shape", []string{"  words: rows (string, int64)", "  names: rows (string, string)"}, ""},
		{"renamed repartition", []string{"shop-by-user-repartition", "shop-in.group-by-repartition"},
			"topology is no upgrade: internal topic shop-by-user-repartition is gone and shop-in.group-by-repartition (repartition (string, main.Order)) is new and would start empty; if it is the same, keep its name with As"},
		{"other type", []string{"words: rows (string, int64)", "words: rows (string, string)"},
			"topology is no upgrade: store words held rows (string, int64) and would hold rows (string, string)"},
		{"other window", []string{"1m0s", "2m0s"},
			"topology is no upgrade: store spend held rows (string, float64) in windows of 1m0s and would hold rows (string, float64) in windows of 2m0s"},
		{"other application", []string{"application shop", "application shop2"},
			"topology is no upgrade: application id was shop and is shop2: group, stores and topics would all be new"},
		{"no description", []string{"application shop", ""}, `topology is no upgrade: new description: no line "application …"`},
		{"damaged", []string{"  words: rows", "  words rows"}, `topology is no upgrade: new description: line "  words rows (string, int64); on disk, changelog shop-words-changelog" in section "stores" has no name`},
	} {
		after := before
		for i := 0; i < len(c.edit); i += 2 {
			if !strings.Contains(after, c.edit[i]) {
				t.Fatalf("%s: nothing to edit", c.name)
			}
			after = strings.ReplaceAll(after, c.edit[i], c.edit[i+1])
		}
		got := ""
		if err := CheckUpgrade(before, after); err != nil {
			got = err.Error()
		}
		if got != c.err {
			t.Errorf("%s: %q, want %q", c.name, got, c.err)
		}
	}
}
