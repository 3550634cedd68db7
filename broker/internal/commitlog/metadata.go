package commitlog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/broker/internal/logdir"
)

// metadataName is Kafka's file that ties a folder to a topic id, so that the folder of a deleted topic is not taken for the
// one of a new topic with the same name.
const metadataName = logdir.Metadata

// ErrTopicID says that a folder belongs to another topic of the same name.
var ErrTopicID = errors.New("the folder belongs to another topic id")

var errBadMetadata = errors.New("no partition.metadata")

func encodeMetadata(id [16]byte) []byte {
	return []byte("version: 0\ntopic_id: " + base64.RawURLEncoding.EncodeToString(id[:]))
}

func decodeMetadata(text []byte) (id [16]byte, err error) {
	version, rest, _ := strings.Cut(string(text), "\n")
	if strings.TrimSpace(version) != "version: 0" {
		return id, fmt.Errorf("%w: it does not begin with version 0", errBadMetadata)
	}
	line, _, _ := strings.Cut(rest, "\n")
	value, ok := strings.CutPrefix(strings.TrimSpace(line), "topic_id: ")
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if !ok || err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("%w: topic id %q", errBadMetadata, line)
	}
	return [16]byte(raw), nil
}
