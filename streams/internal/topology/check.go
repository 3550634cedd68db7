package topology

import (
	"errors"
	"fmt"
	"strings"
)

// maxTopicName is the limit of the protocol's brokers.
const maxTopicName = 249

// check looks for what can only be seen once the whole graph is there.
func (g *Graph) check() []error {
	var errs []error
	if err := checkName(g.appID); err != nil {
		errs = append(errs, fmt.Errorf("application id %q: %w", g.appID, err))
	}
	if len(g.nodes) == 0 {
		errs = append(errs, errors.New("the topology is empty: no stream, no table"))
	}
	seen := map[string]*Node{}
	for _, n := range g.nodes {
		if other := seen[n.Name]; other != nil {
			errs = append(errs, fmt.Errorf("node %s: name is used twice (a %s and a %s); give one of them another with As", n.Name, other.Kind, n.Kind))
		}
		seen[n.Name] = n
		if err := checkName(n.Name); err != nil {
			errs = append(errs, fmt.Errorf("node %q: %w", n.Name, err))
		}
		if (n.Topic != "" || n.Root != nil) && n.Pattern == nil {
			if err := checkName(n.Topic); err != nil {
				errs = append(errs, fmt.Errorf("node %s: topic %q: %w", n.Name, n.Topic, err))
			}
		}
		if err := g.unnamed(n); err != nil {
			errs = append(errs, err)
		}
		if n.Store != nil && n.Store.Changelog != "" {
			if err := checkName(n.Store.Changelog); err != nil {
				errs = append(errs, fmt.Errorf("node %s: changelog %q: %w", n.Name, n.Store.Changelog, err))
			}
		}
	}
	return errs
}

// unnamed reports a node that keeps something under a name that follows from
// its path, if that is not wanted.
func (g *Graph) unnamed(n *Node) error {
	if !g.RequireNames || n.Named || n.Root != nil && !n.Inner { // a source is named after its topic
		return nil
	}
	switch {
	case n.Store != nil && n.Store.FromSource == nil:
		return fmt.Errorf("node %s: its store has no name of its own, which RequireNames wants; give it one with As", n.Name)
	case n.Kind == "repartitioned":
		return fmt.Errorf("node %s: the repartition topic %s has no name of its own, which RequireNames wants; give it one with As where the key changes", n.Name, n.Topic)
	}
	return nil
}

// checkName applies the rules of topic names, which node names must follow too
// as internal topics are named after them.
func checkName(s string) error {
	switch {
	case s == "":
		return errors.New("name is empty")
	case s == "." || s == "..":
		return errors.New("name is not allowed")
	case len(s) > maxTopicName:
		return fmt.Errorf("name has %d characters, the limit is %d; give a shorter one with As", len(s), maxTopicName)
	}
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	}
	if i := strings.IndexFunc(s, bad); i >= 0 {
		return fmt.Errorf("character %q is not allowed, only letters, digits and . _ -", []rune(s[i:])[0])
	}
	return nil
}
