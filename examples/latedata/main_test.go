package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.WantsInAnyOrder(t, play(), `
minutes      roof 12:00 at most 21.5 °C
minutes      roof 12:01 at most 24.0 °C
late         12:00:59 {"celsius": 30}, offset 5 of readings
unreadable   {"celsius": "warm"}, offset 3: phase decode
`)
}
