package serde

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// TestMessagesNeedTheirPackage: a Protobuf message is never written as JSON by
// accident.
func TestMessagesNeedTheirPackage(t *testing.T) {
	// Examples in this test program import it.
	all := finders.all
	finders.all = nil
	defer func() { finders.all = all }()
	check := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrNoSerde) || !strings.Contains(err.Error(), "import the package streams/serde/protobuf") {
			t.Errorf("%v", err)
		}
	}
	_, err := For[*wrapperspb.StringValue](new(Registry))
	check(err)
	_, err = For[wrapperspb.StringValue](new(Registry))
	check(err)
}
