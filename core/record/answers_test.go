package record_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/core/record"
)

// answer is one line of answers.jsonl: what a broker of Apache Kafka 4.4.0 said to the records of a Produce request.
type answer struct {
	Group, What, Topic string
	Version            int16
	Records            []byte
	Code               int16
	ErrorIndex         []int32 `json:"error_index"`
}

// deviations are the answers that we give otherwise on purpose; the reasons stand at Validate.
var deviations = map[string]int16{
	"codec 5":             record.CodeUnsupportedCompressionType,
	"codec 7":             record.CodeUnsupportedCompressionType,
	"garbage as gzip":     record.CodeInvalidRecord,
	"garbage as snappy":   record.CodeInvalidRecord,
	"garbage as lz4":      record.CodeInvalidRecord,
	"garbage as zstd":     record.CodeInvalidRecord,
	"offset deltas 0 2 1": record.CodeInvalidRecord,
	"offset deltas 1 2 3": record.CodeInvalidRecord,
}

// stateful are the codes that depend on what came before: they are package producer's.
var stateful = []int16{45, 47}

func TestKafkaAnswers(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/kafka-4.4.0/answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// When the requests were sent: one of them is two days ahead of it.
	now := time.Date(2026, 11, 29, 15, 43, 55, 0, time.UTC).UnixMilli()
	lines, n := bufio.NewScanner(f), 0
	lines.Buffer(nil, 4<<20)
	for ; lines.Scan(); n++ {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(stateful, a.Code) {
			a.Code = 0
		}
		if own, ok := deviations[a.What]; ok {
			a.Code = own
		}
		rules := record.Rules{
			MaxBytes: 1048588, NoZstd: a.Version < 7, CompactedTopic: a.Topic == "hc",
			NowMs: now, AfterMaxMs: 3600_000,
		}
		checkAnswer(t, a, rules)
	}
	if err := lines.Err(); err != nil || n < 60 {
		t.Fatalf("%d answers, err %v", n, err)
	}
}

func checkAnswer(t *testing.T, a answer, rules record.Rules) {
	t.Helper()
	b, err := record.Single(a.Records)
	var info record.Info
	if err == nil {
		info, err = b.Validate(rules, nil)
	}
	var code int16
	var refused *record.Error
	if errors.As(err, &refused) {
		code = refused.Code
	} else if err != nil {
		t.Errorf("%s: an error without a code: %v", a.What, err)
	}
	if code != a.Code {
		t.Errorf("%s: code %d, want %d (%v)", a.What, code, a.Code, err)
		return
	}
	if a.ErrorIndex != nil {
		var got []int32
		for _, r := range refused.Records {
			got = append(got, r.Index)
		}
		if !slices.Equal(got, a.ErrorIndex) {
			t.Errorf("%s: bad records %v, want %v", a.What, got, a.ErrorIndex)
		}
	}
	if code == 0 {
		checkSettled(t, a.What, b, info)
	}
}

// checkSettled checks that an accepted batch, once settled, says the truth and is a batch with a good checksum still.
func checkSettled(t *testing.T, what string, b record.Batch, info record.Info) {
	t.Helper()
	b.Settle(info)
	again, err := b.Validate(record.Rules{}, nil)
	if err != nil || again.Untrue || b.Attributes().LogAppendTime() || b.Attributes().DeleteHorizon() {
		t.Errorf("%s: settled, but %+v, attributes %b, %v", what, again, b.Attributes(), err)
	}
	latest := int64(record.NoTimestamp)
	for r, err := range b.Records(nil) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		latest = max(latest, r.Timestamp)
	}
	if b.MaxTimestamp() != latest {
		t.Errorf("%s: max timestamp %d, its records' is %d", what, b.MaxTimestamp(), latest)
	}
}
