package pebble_test

import (
	"testing"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/pebble"
	"github.com/millrace/millrace/streams/state/statetest"
)

func open(t *testing.T, dir string) state.Image {
	t.Helper()
	img, err := pebble.New(pebble.Options{}).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestPebble(t *testing.T) {
	t.Parallel()
	statetest.Image(t, statetest.Engine{Open: open, Durable: true})
}
