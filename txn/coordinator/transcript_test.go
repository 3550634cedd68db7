package coordinator

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the machine says into the transcripts")

// TestTranscripts runs the transcripts of testdata: a command, a line of dashes, what
// the machine must say, an empty line. The commands are the cases of run below.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d transcripts found: %v", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := transcript(t, string(src))
			if *rewrite {
				if err := os.WriteFile(name, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, src) {
				t.Errorf("%s: want\n%s\ngot\n%s", name, src, got)
			}
		})
	}
}

// transcript runs one file and returns it with the machine's words in place.
func transcript(t *testing.T, src string) []byte {
	h := newHarness(t)
	var got bytes.Buffer
	skip := false
	for line := range strings.SplitSeq(src, "\n") {
		switch {
		case line == "----":
			skip = true
		case line == "":
			skip = false
		case skip: // the expectation
		case strings.HasPrefix(line, "#"):
			got.WriteString(line + "\n")
		default:
			h.out.Reset()
			h.run(line)
			if h.out.Len() == 0 {
				h.out.WriteString("nothing\n")
			}
			fmt.Fprintf(&got, "%s\n----\n%s\n", line, h.out.String())
			h.checkRestart()
		}
	}
	return bytes.TrimSuffix(got.Bytes(), []byte("\n"))
}

// checkRestart compares the running machine with one that is loaded from the whole log.
func (h *harness) checkRestart() {
	h.t.Helper()
	pid := h.nextPID
	if live, loaded := h.m.Dump(), h.replayed(h.log).Dump(); live != loaded {
		h.t.Fatalf("state differs from its log:\nlive\n%sreplayed\n%s", live, loaded)
	}
	if h.nextPID != pid {
		h.t.Fatal("replay asked for a producer id")
	}
}

type args map[string]string

func (a args) num(name string, otherwise int64) int64 {
	s, ok := a[name]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s=%s: %v", name, s, err))
	}
	return n
}

func (a args) partitions() []TopicPartition {
	var tps []TopicPartition
	for _, s := range strings.Split(a["p"], ",") {
		if s == "" {
			continue
		}
		i := strings.LastIndexByte(s, '-')
		n, err := strconv.ParseInt(s[i+1:], 10, 32)
		if err != nil {
			panic(err)
		}
		tps = append(tps, TopicPartition{s[:i], int32(n)})
	}
	return tps
}

// run carries out one command.
func (h *harness) run(line string) {
	words := strings.Fields(line)
	a := args{}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		a[k] = v
	}
	id := a["id"]
	pid, epoch := a.num("pid", none), int16(a.num("epoch", none))
	switch words[0] {
	case "init", "keep": // id= [pid= epoch=] [timeout=] [v=] [2pc=1]
		r := InitRequest{ID: id, ProducerID: pid, Epoch: epoch, TimeoutMs: int32(a.num("timeout", 60000)), Version: int16(a.num("v", 5)),
			KeepPrepared: words[0] == "keep", Enable2PC: a.num("2pc", 0) != 0}
		h.do(func(to Token) Output { return h.m.InitProducerID(h.nowMs, to, r) })
	case "add", "implicit", "verify": // id= pid= epoch= p=topic-0,… [v=]
		r := AddRequest{ID: id, ProducerID: pid, Epoch: epoch, Partitions: a.partitions(), Version: int16(a.num("v", 3)),
			Implicit: words[0] == "implicit", VerifyOnly: words[0] == "verify"}
		if words[0] != "add" {
			r.Version = 5
		}
		h.do(func(to Token) Output { return h.m.AddPartitions(h.nowMs, to, r) })
	case "commit", "abort": // id= pid= epoch= [v=]
		r := EndRequest{ID: id, ProducerID: pid, Epoch: epoch, Commit: words[0] == "commit", Version: int16(a.num("v", 5))}
		h.do(func(to Token) Output { return h.m.EndTxn(h.nowMs, to, r) })
	default:
		h.runOwner(words[0], a)
	}
}

// runOwner carries out a command of the machine's owner.
func (h *harness) runOwner(command string, a args) {
	switch command {
	case "markers": // the oldest decision's markers are durable
		h.carryOut()
	case "markers-again": // the decision before was carried out by two
		d := h.carried
		h.do(func(Token) Output { return h.m.Completed(h.nowMs, d) })
	case "advance": // ms=
		h.nowMs += a.num("ms", 0)
		h.do(func(Token) Output { return h.m.Tick(h.nowMs) })
	case "fail": // the next append fails
		h.failNext = true
	case "restart": // [drop=n] last records that a power cut takes
		h.restart(len(h.log) - int(a.num("drop", 0)))
	case "epoch": // id= epoch=: puts an id at rest at a high epoch, which would take 32766 requests
		t := h.m.ids[a["id"]]
		md, _ := t.to(Empty, t.updateMs)
		md.epoch, md.lastEpoch = int16(a.num("epoch", 0)), none
		md.partitions, md.startMs = nil, none
		h.apply(Output{Records: []Record{logged(t.id, md)}})
		h.out.Reset()
	case "no-two-phase": // as a broker that was restarted without it
		h.noTwoPhase = true
		h.restart(len(h.log))
	case "undecided":
		h.do(func(to Token) Output { return h.m.Undecided(h.nowMs, to) })
	case "no-producer-ids":
		h.noPID = true
	case "producer-ids":
		h.noPID = false
	case "deadline":
		if ms, ok := h.m.NextDeadline(); ok {
			fmt.Fprintf(&h.out, "in %d ms\n", ms-h.nowMs)
		}
	case "dump":
		h.out.WriteString(h.m.Dump())
	default:
		h.t.Fatalf("unknown command %q", command)
	}
}
