package main

import (
	"testing"

	"github.com/millrace/millrace/examples/internal/stage/stagetest"
)

func TestExample(t *testing.T) {
	t.Parallel()
	stagetest.WantsInAnyOrder(t, play(), `
customers    c1 {Ann Mill Lane 1}
customers    c2 {Bob Race Road 2}
customers    c1 erased
profiles     c1 1 orders, 950 cents
profiles     c2 1 orders, 700 cents
profiles     c1 2 orders, 1000 cents
profiles     c1 erased
profiles     c1 1 orders, 1 cents
`)
}
