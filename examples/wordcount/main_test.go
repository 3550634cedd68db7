package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.Wants(t, play(), `
counts       the 1
counts       mill 1
counts       turns 1
counts       the 2
counts       race 1
counts       turns 2
counts       the 3
counts       mill 2
`)
}
