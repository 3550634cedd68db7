package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUpgrade reports a new topology that would lose what an old one kept.
var ErrUpgrade = errors.New("topology is no upgrade")

// CheckUpgrade compares two descriptions, as in Topology.Text, and refuses
// what would silently lose or misread state: a store or a repartition topic
// that is gone while one of the same shape is new (a rename: the new one
// would start empty), and a store whose rows changed their shape. Removing
// and adding things is no error.
func CheckUpgrade(before, after string) error { return CheckUpgradeBut(before, after, nil) }

// CheckUpgradeBut is CheckUpgrade where the stores and topics with some of the old
// names may be left behind. A name that is still there is none of them.
func CheckUpgradeBut(before, after string, abandoned []string) error {
	was, err := parse(before)
	if err != nil {
		return fmt.Errorf("%w: old description: %w", ErrUpgrade, err)
	}
	is, err := parse(after)
	if err != nil {
		return fmt.Errorf("%w: new description: %w", ErrUpgrade, err)
	}
	var errs []error
	if was.app != is.app {
		errs = append(errs, fmt.Errorf("%w: application id was %s and is %s: group, stores and topics would all be new", ErrUpgrade, was.app, is.app))
	} else {
		errs = append(errs, compare("store", but(was.stores, abandoned), is.stores)...)
		errs = append(errs, compare("internal topic", but(was.repartitions(), abandoned), is.repartitions())...)
	}
	return errors.Join(errs...)
}

// but leaves out what is abandoned. What is still there under its name comes back
// by the comparison of shapes, as the new side has it too.
func but(lines []line, abandoned []string) []line {
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return slices.Contains(abandoned, l.name) })
}

// line is one named thing of a description and the shape that identifies it.
type line struct{ name, shape string }

type description struct {
	app            string
	stores, topics []line
}

func parse(text string) (description, error) {
	var d description
	section := ""
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\r\n")
		switch {
		case strings.HasPrefix(l, "application "):
			d.app = strings.TrimPrefix(l, "application ")
		case l != "" && !strings.HasPrefix(l, " "):
			section = l
		case l == "" || (section != "stores" && section != "internal topics"):
		default:
			name, rest, ok := strings.Cut(strings.TrimSpace(l), ": ")
			if !ok {
				return d, fmt.Errorf("line %q in section %q has no name", l, section)
			}
			shape, _, _ := strings.Cut(rest, "; ")
			if section == "stores" {
				d.stores = append(d.stores, line{name, shape})
			} else {
				d.topics = append(d.topics, line{name, shape})
			}
		}
	}
	if d.app == "" {
		return d, errors.New(`no line "application …"`)
	}
	return d, nil
}

// repartitions leaves out changelogs, which follow their stores.
func (d description) repartitions() []line {
	return slices.DeleteFunc(slices.Clone(d.topics), func(l line) bool { return !strings.HasPrefix(l.shape, Repartition.String()) })
}

func compare(what string, was, is []line) []error {
	var errs []error
	named := func(in []line, name string) int {
		return slices.IndexFunc(in, func(l line) bool { return l.name == name })
	}
	var added []line
	for _, l := range is {
		if named(was, l.name) < 0 {
			added = append(added, l)
		}
	}
	for _, old := range was {
		if at := named(is, old.name); at >= 0 {
			if is[at].shape != old.shape {
				errs = append(errs, fmt.Errorf("%w: %s %s held %s and would hold %s", ErrUpgrade, what, old.name, old.shape, is[at].shape))
			}
			continue
		}
		twin := slices.IndexFunc(added, func(l line) bool { return l.shape == old.shape })
		if twin >= 0 {
			errs = append(errs, fmt.Errorf("%w: %s %s is gone and %s (%s) is new and would start empty; if it is the same, keep its name with As",
				ErrUpgrade, what, old.name, added[twin].name, old.shape))
			added = slices.Delete(added, twin, twin+1)
		}
	}
	return errs
}
