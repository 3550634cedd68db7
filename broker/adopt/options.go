package adopt

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

var (
	// ErrNotKafka says that a folder is none of a single Apache Kafka broker in KRaft mode.
	ErrNotKafka = errors.New("not the data folder of an Apache Kafka broker with its controller")
	// ErrUnclean says that the broker did not stop cleanly, or still runs.
	ErrUnclean = errors.New("the broker did not stop cleanly, or still runs")
	// ErrDamaged says that a verification found damage.
	ErrDamaged = errors.New("the data folder is damaged")
	// ErrIncomplete says that partitions are missing: other brokers have them.
	ErrIncomplete = errors.New("not all partitions are here")
	// ErrNotEmpty says that there is something where the new folder should be.
	ErrNotEmpty = errors.New("the new data folder is not empty")
)

// Options of an adoption. From and To are needed.
type Options struct {
	FS vfs.FS // nil is the machine's
	// From is Kafka's log.dirs: one folder, or all of them.
	From []string
	// To is the data folder to be made. It must not exist, or be empty.
	To string
	// Unclean takes a folder that was not stopped cleanly: what is torn at the end of a log is cut off. Be sure that no broker runs.
	Unclean bool
	Clock   clock.Clock  // nil is the system's
	Logger  *slog.Logger // nil discards
	// Progress is called with the bytes of log files that were read since its last call; each is read twice. nil is nobody.
	Progress func(bytes int64)
}

// Validate names the field that is missing.
func (o Options) Validate() error {
	switch {
	case len(o.From) == 0:
		return errors.New("adopt: From is empty, must name Kafka's log.dirs")
	case o.To == "":
		return errors.New("adopt: To is empty, must name the data folder to be made")
	}
	for _, from := range o.From {
		if filepath.Clean(from) == filepath.Clean(o.To) {
			return fmt.Errorf("adopt: To is %q, must not be one of From", o.To)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	return o
}

// Report says what was taken over.
type Report struct {
	ClusterID  string `json:"cluster_id"`
	NodeID     int32  `json:"node_id"`
	Topics     int    `json:"topics"`
	Partitions int    `json:"partitions"`
	Bytes      int64  `json:"bytes"` // of log files
	// LeftOut names what was not: records of the metadata log by their type, settings of topics, topics.
	LeftOut []string `json:"left_out"`
}

// unfinished ends the name of a folder that is being made.
const unfinished = ".importing"

// cleanStop is the file that Kafka writes at the end of a clean stop, and removes when it starts.
const cleanStop = ".kafka_cleanshutdown"
