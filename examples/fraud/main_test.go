package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.Wants(t, play(), `
alerts       12:00:30 card-1: 90000 cents after 50
alerts       12:02:00 card-3: 60000 cents after 10
`)
}
