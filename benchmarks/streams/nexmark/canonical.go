package nexmark

import (
	"encoding/json/v2"
	"fmt"
)

// canonical is a value in a form that can be compared.
func canonical(v any) string {
	if n, ok := v.(int64); ok {
		return fmt.Sprint(n)
	}
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("nexmark: a result does not encode: " + err.Error()) // our own types do
	}
	return string(b)
}
