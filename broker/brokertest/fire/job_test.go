package fire

import (
	"flag"
	"strconv"
	"strings"
	"time"
)

// job is what a copier is asked to do. Its flags are those of Apache Kafka's TransactionalMessageCopier.
type job struct {
	brokers, input, output string
	partition              int // in partition form
	group                  string
	id                     string // transactional id
	size                   int    // records of a transaction
	timeout                time.Duration
	groupMode              bool
	sarama                 bool // ours: on Sarama instead of franz-go
}

func (j *job) register(f *flag.FlagSet) {
	f.StringVar(&j.brokers, "broker-list", "", "host:port of the cluster")
	f.StringVar(&j.input, "input-topic", "", "topic to consume")
	f.IntVar(&j.partition, "input-partition", 0, "partition to consume, unless it is a group's")
	f.StringVar(&j.output, "output-topic", "", "topic to produce to")
	f.StringVar(&j.group, "consumer-group", "", "group whose offsets are committed")
	f.StringVar(&j.id, "transactional-id", "", "of the producer")
	f.IntVar(&j.size, "transaction-size", 200, "records of a transaction")
	f.BoolVar(&j.groupMode, "group-mode", false, "share the partitions with the group")
	f.Func("transaction-timeout", "milliseconds", func(s string) error {
		ms, err := strconv.Atoi(s)
		j.timeout = time.Duration(ms) * time.Millisecond
		return err
	})
	f.BoolVar(&j.sarama, "sarama", false, "use Sarama, in group form only; a flag of our program alone")
	f.Bool("enable-random-aborts", false, "abort a third of the transactions")
	f.Bool("use-group-metadata", false, "fence by the group's generation")
}

// args are the command line that means the job to either program.
func (j *job) args() []string {
	args := []string{
		"--broker-list", j.brokers, "--input-topic", j.input, "--input-partition", strconv.Itoa(j.partition),
		"--output-topic", j.output, "--consumer-group", j.group, "--transactional-id", j.id,
		"--transaction-size", strconv.Itoa(j.size), "--transaction-timeout", strconv.FormatInt(j.timeout.Milliseconds(), 10),
		"--enable-random-aborts", "--use-group-metadata",
	}
	if j.groupMode {
		args = append(args, "--group-mode")
	}
	if j.sarama {
		args = append(args, "--sarama")
	}
	return args
}

func (j *job) seeds() []string { return strings.Split(j.brokers, ",") }
