package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.Wants(t, play(), `
top          12:00 tea 1
top          12:01 cup 1, tea 1
top          12:02 tea 2, cup 1
top          12:03 tea 2, cup 1, pot 1
top          12:04 tea 2, cup 1, jam 1
top          12:05 cup 2, tea 2, jam 1
top          12:06 cup 3, tea 2, jam 1
top          12:07 cup 3, jam 2, tea 2
top          12:08 cup 3, jam 3, tea 2
top          12:09 jam 4, cup 3, tea 2
`)
}
