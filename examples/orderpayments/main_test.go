package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.Wants(t, play(), `
states       o1 ann has paid
states       o4 dan owes 50 cents
states       o2 bob has not paid
states       o3 cem has not paid
`)
}
