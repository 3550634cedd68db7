package crash

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/vfs"
)

// A folder that says it is another topic's is damage where records are known to be: nothing is begun in its place.
func TestFolderWithAWrongTopicID(t *testing.T) {
	mem := vfs.NewMem()
	b := brokertest.Start(t, brokertest.OnFS(mem), small, quiet)
	w := dial(t, b)
	for _, topic := range []string{"t", "other"} {
		w.must("create", func() int16 { return w.createTopic(topic, 1) })
		if row := w.produce(9, "", topic, 0, batch(-1, -1, -1, false, "a", "b")); row.ErrorCode != 0 {
			t.Fatal(code(row.ErrorCode))
		}
	}
	w.close()
	stop(t, b)
	const path = "data/t-0/partition.metadata"
	text, err := vfs.ReadFile(mem, path)
	if err != nil {
		t.Fatal(err)
	}
	wrong := "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
	if err := vfs.WriteFile(mem, path, []byte(wrong), true); err != nil {
		t.Fatal(err)
	}
	d := new(diary)
	b = brokertest.Start(t, brokertest.OnFS(mem), small, d.option())
	w = dial(t, b)
	if end, c := w.offset("t", 0, -1, false); c != kerr.KafkaStorageError.Code {
		t.Errorf("the partition ends at %d, %s, want it offline", end, code(c))
	}
	if said := d.String(); !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "t-0") || !strings.Contains(said, "partition.metadata") {
		t.Errorf("the log does not name the file:\n%s", said)
	}
	if end, c := w.offset("other", 0, -1, false); end != 2 || c != 0 {
		t.Errorf("the other topic ends at %d, %s", end, code(c))
	}
	stop(t, b)
	if err := vfs.WriteFile(mem, path, text, true); err != nil {
		t.Fatal(err)
	}
	b = brokertest.Start(t, brokertest.OnFS(mem), small, quiet)
	if end, c := dial(t, b).offset("t", 0, -1, false); end != 2 || c != 0 {
		t.Errorf("with the right file again it ends at %d, %s, want 2", end, code(c))
	}
}
