package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.WantsInAnyOrder(t, play(), `
lines        o1 2 × tea: 900 cents
lines        o2 1 × cup: 990 cents
lines        o3 1 × tea: 450 cents
`)
}
