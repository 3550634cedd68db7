//go:build pins

package millrace

// Parts of the design whose rooms come later are pinned here, so that go.mod names the version they will be built
// against and go mod tidy keeps it: the bridge to ThreeDotsLabs/watermill (connectors/watermill).
import _ "github.com/ThreeDotsLabs/watermill"
