package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.Wants(t, play(), `
unique       12:00 ann o1 tea
unique       12:02 bob o2 cup
unique       12:03 ann o3 tea
unique       15:00 ann o1 pot
`)
}
