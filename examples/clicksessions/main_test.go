package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.Wants(t, play(), `
sessions     bob 12:01 for 0s: 1 clicks, bought: false
sessions     ann 12:00 for 50m0s: 6 clicks, bought: true
`)
}
