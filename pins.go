//go:build pins

package millrace

// A part of the design whose room comes later is pinned here, so that go.mod names the version it will be built
// against and go mod tidy keeps it.
import (
	_ "github.com/ThreeDotsLabs/watermill" // connectors/watermill
)
