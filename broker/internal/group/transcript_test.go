package group

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

var update = flag.Bool("update", false, "write the answers into the transcripts in testdata")

// TestTranscripts runs testdata/*.txt. A transcript is a list of commands, each
// with the answers that come out of the machine. A file begins with the options:
//
//	options delay=0 max-size=5
//
// Commands: join, sync, heartbeat, leave, commit, verify, txn-commit, end, fetch,
// delete-topic, forget, topic, advance, broken, crash, show. After every command the
// machine must be what its log says.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { transcript(t, file) })
	}
}

func transcript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := newDriver(Options{InitialRebalanceDelay: -1})
	var out strings.Builder
	var want strings.Builder
	flush := func(line int) {
		if got := d.take(); got != want.String() && !*update {
			t.Errorf("%s: before line %d:\n--- got\n%s--- want\n%s", file, line, got, want.String())
		} else {
			out.WriteString(got)
		}
		want.Reset()
	}
	for i, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		command, ok := strings.CutPrefix(line, "> ")
		switch {
		case ok:
			flush(i + 1)
			out.WriteString(line + "\n")
			if name, args := parse(command); name == "options" {
				d = newDriver(args.options())
			} else {
				d.command(t, name, args)
				d.same(t)
			}
		case line == "" || strings.HasPrefix(line, "#"):
			flush(i + 1)
			out.WriteString(line + "\n")
		default:
			want.WriteString(line + "\n")
		}
	}
	flush(-1)
	for n := range d.log {
		if _, err := d.load(d.log[:n]); err != nil {
			t.Errorf("the first %d records do not load: %v", n, err)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// args are the words behind a command: the first is its name in the answers.
type args struct {
	name string
	kv   map[string]string
}

func parse(command string) (string, args) {
	words := strings.Fields(command)
	a := args{kv: map[string]string{}}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok {
			a.kv[k] = v
		} else {
			a.name = w
		}
	}
	return words[0], a
}

func (a args) str(key, standard string) string {
	if v, ok := a.kv[key]; ok {
		return v
	}
	return standard
}

func (a args) num(key string, standard int64) int64 {
	v, ok := a.kv[key]
	if !ok {
		return standard
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s=%s: %v", key, v, err))
	}
	return n
}

func (a args) ptr(key string) *string {
	if v, ok := a.kv[key]; ok {
		return &v
	}
	return nil
}

func (a args) options() Options {
	o := Options{InitialRebalanceDelay: time.Duration(a.num("delay", 0)) * time.Millisecond, MaxSize: int(a.num("max-size", 0))}
	if o.InitialRebalanceDelay == 0 {
		o.InitialRebalanceDelay = -1
	}
	o.MaxMetadataBytes = int(a.num("max-metadata", 0))
	return o
}

func (d *driver) command(t *testing.T, name string, a args) {
	t.Helper()
	switch name {
	case "join":
		d.run(d.m.Join(d.nowMs, d.token(a.name), Client{ID: a.str("client", a.name), Host: "/127.0.0.1"}, a.join()))
	case "sync":
		d.run(d.m.Sync(d.nowMs, d.token(a.name), a.sync()))
	case "heartbeat":
		r := kmsg.NewPtrHeartbeatRequest()
		r.Group, r.MemberID, r.Generation, r.InstanceID = a.str("g", "g"), a.str("m", ""), int32(a.num("gen", 1)), a.ptr("instance")
		d.run(d.m.Heartbeat(d.nowMs, d.token(a.name), r))
	case "leave":
		d.run(d.m.Leave(d.nowMs, d.token(a.name), a.leave()))
	case "commit":
		d.run(d.m.Commit(d.nowMs, d.token(a.name), d.commitOf(a)))
	case "txn-commit":
		c := d.commitOf(a)
		if a.str("verified", "no") == "yes" {
			c.Verified = d.verified
		}
		d.run(d.m.TxnCommit(d.nowMs, d.token(a.name), coord.Txn{ProducerID: a.num("pid", 7)}, c))
	case "verify":
		d.verified = d.m.BeginVerify(d.nowMs, a.num("pid", 7))
	case "end":
		d.marker(a.num("pid", 7), a.name == "commit")
	case "fetch":
		d.run(d.m.Fetch(d.nowMs, d.token(a.name), d.fetchOf(a)))
	case "delete-topic":
		id := d.topics[a.str("topic", "")]
		delete(d.topics, a.str("topic", ""))
		if a.str("tombstones", "yes") == "yes" {
			d.run(d.m.DeleteTopic(d.nowMs, d.token(a.name), a.str("topic", ""), id))
		}
	case "forget":
		d.run(d.m.DeleteTopic(d.nowMs, d.token(a.name), a.str("topic", ""), ID{byte(a.num("id", 0))}))
	case "topic":
		d.topics[a.name] = ID{byte(a.num("id", 1))}
	case "advance":
		d.advance(a.num("ms", 0))
	case "broken":
		d.broken = a.name == "on"
	case "crash":
		d.crash()
	case "show":
		d.note("state", d.show(a.str("g", "g")))
	case "dump":
		for _, line := range strings.Split(strings.TrimRight(d.m.Dump(), "\n"), "\n") {
			d.note("log", line)
		}
	default:
		t.Fatalf("unknown command %q", name)
	}
}

func (a args) join() *kmsg.JoinGroupRequest {
	r := kmsg.NewPtrJoinGroupRequest()
	r.Version = int16(a.num("v", 9))
	r.Group, r.MemberID, r.InstanceID = a.str("g", "g"), a.str("m", ""), a.ptr("instance")
	r.SessionTimeoutMillis = int32(a.num("session", 10_000))
	r.RebalanceTimeoutMillis = int32(a.num("rebalance", 60_000))
	r.ProtocolType = a.str("type", "consumer")
	for _, p := range strings.Split(a.str("protocols", "range:"+a.name), ",") {
		name, metadata, _ := strings.Cut(p, ":")
		if p != "" {
			r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: []byte(metadata)})
		}
	}
	return r
}

func (a args) sync() *kmsg.SyncGroupRequest {
	r := kmsg.NewPtrSyncGroupRequest()
	r.Version = 5
	r.Group, r.MemberID, r.InstanceID = a.str("g", "g"), a.str("m", ""), a.ptr("instance")
	r.Generation = int32(a.num("gen", 1))
	r.ProtocolType, r.Protocol = a.ptr("type"), a.ptr("protocol")
	for _, p := range strings.Split(a.str("assign", ""), ",") {
		if id, assignment, ok := strings.Cut(p, ":"); ok {
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(assignment)})
		}
	}
	return r
}

func (a args) leave() *kmsg.LeaveGroupRequest {
	r := kmsg.NewPtrLeaveGroupRequest()
	r.Version = int16(a.num("v", 5))
	r.Group, r.MemberID = a.str("g", "g"), a.str("m", "")
	for _, who := range strings.Split(a.str("members", ""), ",") {
		id, instance, static := strings.Cut(who, "@")
		o := kmsg.LeaveGroupRequestMember{MemberID: id}
		if static {
			o.InstanceID = &instance
		}
		r.Members = append(r.Members, o)
	}
	return r
}

// commitOf reads offsets=topic-partition=offset:metadata,... where ":" may be left out.
func (d *driver) commitOf(a args) *Commit {
	c := &Commit{
		Group: a.str("g", "g"), Member: a.str("m", ""), Instance: a.ptr("instance"),
		Generation: int32(a.num("gen", -1)), Version: int16(a.num("v", 9)), RetentionMs: a.num("retention", -1),
	}
	for _, p := range strings.Split(a.str("offsets", ""), ",") {
		if p == "" {
			continue
		}
		where, what, _ := strings.Cut(p, ":")
		i := strings.LastIndex(where, "-")
		index, err := strconv.Atoi(where[i+1:])
		offset, metadata, _ := strings.Cut(what, ":")
		at, err2 := strconv.ParseInt(offset, 10, 64)
		if err != nil || err2 != nil {
			panic("bad offset " + p)
		}
		c.Offsets = append(c.Offsets, Offset{
			Topic: where[:i], TopicID: d.topics[where[:i]], Partition: int32(index), Offset: at, LeaderEpoch: -1, Metadata: metadata,
		})
	}
	return c
}

func (d *driver) fetchOf(a args) *Fetch {
	f := &Fetch{
		Group: a.str("g", "g"), Stable: a.str("stable", "no") == "yes",
		TopicID: func(topic string) ID { return d.topics[topic] },
	}
	if a.kv["topics"] == "" {
		f.All = true
		return f
	}
	for _, p := range strings.Split(a.kv["topics"], ",") {
		i := strings.LastIndex(p, "-")
		index, err := strconv.Atoi(p[i+1:])
		if err != nil {
			panic("bad partition " + p)
		}
		f.Topics = append(f.Topics, FetchTopic{Topic: p[:i], Partitions: []int32{int32(index)}})
	}
	return f
}

// show describes a group's running protocol.
func (d *driver) show(id string) string {
	g := d.m.groups[id]
	if g == nil {
		return Dead.String()
	}
	s := fmt.Sprintf("%s generation=%d", g.state(), g.generation())
	if g.live == nil {
		return s
	}
	for _, o := range g.live.members {
		s += " " + o.id
		if o.id == g.live.leader {
			s += "*"
		}
		if o.joining != 0 {
			s += "(joining)"
		}
		if o.syncing != 0 {
			s += "(syncing)"
		}
	}
	if n := len(g.live.pending); n > 0 {
		s += fmt.Sprintf(" pending=%d", n)
	}
	return s
}
