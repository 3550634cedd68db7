package protobuf_test

import (
	"testing"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/protobuf"
	"github.com/millrace/millrace/streams/serde/protobuf/shoptest"
)

// FuzzSchemaText: whatever a registry says, reading by it does not panic.
func FuzzSchemaText(f *testing.F) {
	f.Add(shopText, []byte("\x04\x02\x00"))
	f.Add("CgVhLnByb3Rv", []byte("\x00"))
	f.Fuzz(func(t *testing.T, text string, record []byte) {
		read, err := protobuf.New[*shoptest.Order]().ReaderOf(serde.Schema{Text: text})
		if err == nil {
			_, _ = read(record) // an error is as good as a message
		}
	})
}
