//go:build pins

package millrace

// Parts of the design whose rooms come later are pinned here, so that go.mod names the version they will be built
// against and go mod tidy keeps it.
import (
	_ "github.com/ThreeDotsLabs/watermill"       // connectors/watermill
	_ "github.com/cockroachdb/pebble/v2"         // streams/state/pebble
	_ "github.com/hamba/avro/v2"                 // streams/serde/avro
	_ "github.com/jackc/pgx/v5"                  // txn/twophase
	_ "github.com/jackc/pgx/v5/pgxpool"          // txn/twophase
	_ "github.com/santhosh-tekuri/jsonschema/v6" // streams/serde/jsonschema
	_ "github.com/twmb/franz-go/pkg/sr"          // streams/serde/registry
	_ "go.opentelemetry.io/otel/sdk/trace"       // streams traces
	_ "go.opentelemetry.io/otel/trace"           // streams traces
	_ "google.golang.org/protobuf/proto"         // streams/serde/protobuf
)
