package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace/broker/internal/logdir"
)

// epochsName is Kafka's file for the leader epochs: a text of version 0, the number of lines, and lines of epoch and the
// offset of its first batch.
const epochsName = logdir.Epochs

var errBadEpochs = errors.New("no leader epoch file")

// epochStart says where the batches of a leader epoch begin.
type epochStart struct {
	epoch int32
	start int64
}

// epochs is the history of the leaders. Both columns rise. Readers need no lock: a change makes a new slice. Changes come from
// whoever holds the append lock, and from a reader who finds the file wrong (repairEpochs), so they compare and swap.
type epochs struct{ list atomic.Pointer[[]epochStart] }

func (e *epochs) view() []epochStart {
	_, list := e.load()
	return list
}

// load is the list, and the pointer that a change compares with.
func (e *epochs) load() (was *[]epochStart, list []epochStart) {
	if was = e.list.Load(); was != nil {
		list = *was
	}
	return was, list
}

// assign notes that batches of an epoch begin at an offset; false when that is known or the epoch is older than the last.
func (e *epochs) assign(epoch int32, start int64) bool {
	for {
		was, old := e.load()
		if n := len(old); epoch < 0 || n > 0 && old[n-1].epoch >= epoch {
			return false
		}
		list := slices.Clone(old)
		for len(list) > 0 && list[len(list)-1].start >= start { // an epoch that wrote nothing
			list = list[:len(list)-1]
		}
		list = append(list, epochStart{epoch, start})
		if e.list.CompareAndSwap(was, &list) {
			return true
		}
	}
}

// trim drops what begins behind end, and keeps of the rest what reaches beyond start; true when that changed anything.
func (e *epochs) trim(start, end int64) bool {
	for {
		was, old := e.load()
		list := slices.Clone(old)
		for len(list) > 0 && list[len(list)-1].start > end {
			list = list[:len(list)-1]
		}
		for len(list) > 1 && list[1].start <= start {
			list = list[1:]
		}
		if len(list) > 0 {
			list[0].start = max(list[0].start, start)
		}
		if slices.Equal(old, list) {
			return false
		}
		if e.list.CompareAndSwap(was, &list) {
			return true
		}
	}
}

// end is the answer to OffsetForLeaderEpoch: the largest epoch not above the asked one, and where it ends, which for the
// latest is the log's end. Nothing known is (-1, -1).
func (e *epochs) end(epoch int32, logEnd int64) (found int32, end int64) {
	list := e.view()
	if len(list) == 0 || epoch < 0 || epoch > list[len(list)-1].epoch {
		return -1, -1
	}
	i := sort.Search(len(list), func(i int) bool { return list[i].epoch > epoch })
	switch {
	case i == 0: // older than all that is known: it ends where the oldest begins
		return epoch, list[0].start
	case i == len(list):
		return list[i-1].epoch, logEnd
	}
	return list[i-1].epoch, list[i].start
}

// at is the epoch of the batch at an offset, -1 when unknown.
func (e *epochs) at(offset int64) int32 {
	list := e.view()
	i := sort.Search(len(list), func(i int) bool { return list[i].start > offset })
	if i == 0 {
		return -1
	}
	return list[i-1].epoch
}

func (e *epochs) encode() []byte {
	list := e.view()
	out := fmt.Appendf(nil, "0\n%d\n", len(list))
	for _, s := range list {
		out = fmt.Appendf(out, "%d %d\n", s.epoch, s.start)
	}
	return out
}

// decode reads the file's text and checks that both columns rise.
func (e *epochs) decode(text []byte) error {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) < 2 || lines[0] != "0" || bytes.IndexByte(text, 0) >= 0 {
		return fmt.Errorf("%w: it does not begin with version 0", errBadEpochs)
	}
	n, err := strconv.Atoi(lines[1])
	if err != nil || n != len(lines)-2 {
		return fmt.Errorf("%w: it announces %q entries and has %d", errBadEpochs, lines[1], len(lines)-2)
	}
	list := make([]epochStart, 0, n)
	for _, line := range lines[2:] {
		a, b, _ := strings.Cut(line, " ")
		epoch, err1 := strconv.ParseInt(a, 10, 32)
		start, err2 := strconv.ParseInt(b, 10, 64)
		if err := errors.Join(err1, err2); err != nil || epoch < 0 || start < 0 || start == math.MaxInt64 {
			return fmt.Errorf("%w: entry %q", errBadEpochs, line)
		}
		if n := len(list); n > 0 && (list[n-1].epoch >= int32(epoch) || list[n-1].start > start) {
			return fmt.Errorf("%w: entry %q does not rise", errBadEpochs, line)
		}
		list = append(list, epochStart{int32(epoch), start})
	}
	e.list.Store(&list)
	return nil
}
