package commitlog

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/millrace/millrace/broker/internal/logdir"
)

// progressName is our counterpart of Kafka's file of that name in the data folder: how far compaction has come. It lies in the
// partition's folder, so that it comes and goes with it.
const progressName = logdir.Progress

// Progress is how far the compaction of a log has come. It is written before a round changes anything, and after it.
type Progress struct {
	Cleaned   int64 // rounds have seen all records below
	Rewritten int64 // below it batches may be missing: gaps in the offsets are no damage
	HorizonMs int64 // when something may go that only waits for its delete horizon; math.MaxInt64 when nothing does
}

const progressText = "version: 0\ncleaned: %d\nrewritten: %d\nhorizon: %d\n"

func (p Progress) encode() []byte {
	text := fmt.Appendf(nil, progressText, p.Cleaned, p.Rewritten, p.HorizonMs)
	return fmt.Appendf(text, "crc: %08x\n", crc32.Checksum(text, castagnoli))
}

// ReadProgress reads the file's text, for a tool.
func ReadProgress(text []byte) (Progress, error) { return decodeProgress(text) }

func decodeProgress(text []byte) (p Progress, err error) {
	var sum uint32
	if _, err = fmt.Sscanf(string(text), progressText+"crc: %08x\n", &p.Cleaned, &p.Rewritten, &p.HorizonMs, &sum); err != nil {
		return Progress{}, err
	}
	if string(p.encode()) != string(text) {
		return Progress{}, errors.New("its checksum does not match")
	}
	return p, nil
}
