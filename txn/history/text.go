package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

var (
	typeNames = [...]string{"invoke", "ok", "fail", "info"}
	kindNames = [...]string{"send", "poll", "txn", "assign", "subscribe", "crash", "marks", "committed", "drain"}
	stepNames = [...]string{"send", "poll", "offsets", "commit", "abort"}
)

func (t Type) String() string     { return nameOf(typeNames[:], int(t)) }
func (k Kind) String() string     { return nameOf(kindNames[:], int(k)) }
func (k StepKind) String() string { return nameOf(stepNames[:], int(k)) }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown(" + strconv.Itoa(i) + ")"
}

// fromStart is the word in the line of an Assign.
const fromStart = "from-start"

// rebalanced starts the list of Event.Rebalanced.
const rebalanced = "rebalanced"

// AppendText appends the event as one line without its end. See [Parse] for the form.
func (e *Event) AppendText(b []byte) []byte {
	b = append(b, '@')
	b = strconv.AppendInt(b, e.Time, 10)
	b = append(b, " p"...)
	b = strconv.AppendInt(b, int64(e.Process), 10)
	b = append(b, ' ')
	b = append(b, e.Type.String()...)
	b = append(b, ' ')
	b = append(b, e.Kind.String()...)
	if e.Group != "" {
		b = append(append(b, ' '), e.Group...)
	}
	b = appendKeys(b, e.Keys)
	if e.FromStart {
		b = append(append(b, ' '), fromStart...)
	}
	b = appendPositions(b, e.Positions)
	for i, m := range e.Marks {
		if i > 0 {
			b = append(b, " ,"...)
		}
		b = fmt.Appendf(b, " %v %d %d %d", m.Key, m.Start, m.Stable, m.High)
	}
	for i := range e.Steps {
		if i > 0 {
			b = append(b, " |"...)
		}
		b = e.Steps[i].appendText(b)
	}
	if len(e.Rebalanced) > 0 {
		b = append(b, " | "...)
		b = appendKeys(append(b, rebalanced...), e.Rebalanced)
	}
	if e.Note != "" {
		b = append(b, " # "...)
		b = append(b, strings.Map(oneLine, e.Note)...)
	}
	return b
}

func oneLine(r rune) rune {
	if r < ' ' {
		return ' '
	}
	return r
}

func (s *Step) appendText(b []byte) []byte {
	b = append(append(b, ' '), s.Kind.String()...)
	switch s.Kind {
	case StepSend:
		b = appendKeys(b, []Key{s.Key})
		b = appendRecord(b, s.Value, s.Offset)
	case StepPoll:
		for i, r := range s.Reads {
			if i > 0 && r.Key != s.Reads[i-1].Key {
				b = append(b, " ,"...)
			}
			if i == 0 || r.Key != s.Reads[i-1].Key {
				b = appendKeys(b, []Key{r.Key})
			}
			b = appendRecord(b, r.Value, r.Offset)
		}
	case StepOffsets:
		b = append(append(b, ' '), s.Group...)
		b = appendPositions(b, s.Next)
	}
	if s.At != 0 {
		b = append(b, " ~"...)
		b = strconv.AppendInt(b, s.At, 10)
	}
	return b
}

func appendKeys(b []byte, keys []Key) []byte {
	for _, k := range keys {
		b = append(append(b, ' '), k.String()...)
	}
	return b
}

func appendRecord(b []byte, value, offset int64) []byte {
	b = strconv.AppendInt(append(b, ' '), value, 10)
	if offset != Unknown {
		b = strconv.AppendInt(append(b, '@'), offset, 10)
	}
	return b
}

func appendPositions(b []byte, ps []Position) []byte {
	for _, p := range ps {
		b = fmt.Appendf(b, " %v@%d", p.Key, p.Offset)
	}
	return b
}

// ErrText is wrapped by the errors of Parse.
var ErrText = errors.New("not a history")

// Parse reads a history as AppendText writes it, an event in a line:
//
//	@TIME pPROCESS TYPE KIND … | STEP | STEP # note
//
//	@100 p0 invoke txn send a/0 1 | poll
//	@180 p0 ok txn send a/0 1@7 ~150 | poll b/1 4@2 5@3 , a/0 0@6 | offsets g b/1@4 | commit ~170
//	@190 p1 ok assign a/0 b/1 from-start
//	@191 p2 ok subscribe g a/0
//	@192 p3 ok marks a/0 0 7 9 , b/1 0 4 4
//	@193 p4 ok committed g b/1@4
//
// A record is VALUE@OFFSET, a mark is start, last stable offset, high watermark. A
// line without a time gets one behind the line before. Empty lines and lines that
// start with # are passed over.
func Parse(r io.Reader) ([]Event, error) {
	var events []Event
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 64<<20)
	var last int64
	for line := 1; sc.Scan(); line++ {
		text, note, _ := strings.Cut(sc.Text(), "#")
		if strings.TrimSpace(text) == "" {
			continue
		}
		e, err := parseEvent(strings.Fields(text), last+1)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrText, line, err)
		}
		e.Note = strings.TrimSpace(note)
		last = e.Time
		events = append(events, e)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrText, err)
	}
	return events, nil
}

func parseEvent(f []string, time int64) (e Event, err error) {
	e.Time = time
	if strings.HasPrefix(f[0], "@") {
		if e.Time, err = number(f[0][1:], "time"); err != nil {
			return e, err
		}
		f = f[1:]
	}
	if len(f) < 3 || f[0][0] != 'p' {
		return e, errors.New("want [@TIME] pPROCESS TYPE KIND")
	}
	process, err := number(f[0][1:], "process")
	if err != nil {
		return e, err
	}
	e.Process = int(process)
	typ, err := index(typeNames[:], f[1], "type")
	if err != nil {
		return e, err
	}
	kind, err := index(kindNames[:], f[2], "kind")
	if err != nil {
		return e, err
	}
	e.Type, e.Kind = Type(typ), Kind(kind)
	parts := split(f[3:], "|")
	if n := len(parts); n > 0 && len(parts[n-1]) > 0 && parts[n-1][0] == rebalanced {
		if e.Rebalanced, err = parseKeys(parts[n-1][1:]); err != nil {
			return e, err
		}
		parts = parts[:n-1]
	}
	return e, e.parseBody(parts)
}

func (e *Event) parseBody(parts [][]string) (err error) {
	switch e.Kind {
	case Send, Poll, Txn:
		for _, f := range parts {
			s, err := parseStep(f)
			if err != nil {
				return err
			}
			e.Steps = append(e.Steps, s)
		}
		return nil
	}
	if len(parts) > 1 {
		return fmt.Errorf("%v has no steps", e.Kind)
	}
	if len(parts) == 0 {
		return nil
	}
	f := parts[0]
	switch e.Kind {
	case Assign:
		if n := len(f); n > 0 && f[n-1] == fromStart {
			e.FromStart, f = true, f[:n-1]
		}
		e.Keys, err = parseKeys(f)
	case Subscribe:
		e.Group = f[0]
		e.Keys, err = parseKeys(f[1:])
	case Committed:
		e.Group = f[0]
		e.Positions, err = parsePositions(f[1:])
	case Marks:
		e.Marks, err = parseMarks(split(f, ","))
	default:
		err = fmt.Errorf("%v takes no arguments, got %q", e.Kind, f)
	}
	return err
}

func parseStep(f []string) (s Step, err error) {
	s.Offset = Unknown
	if n := len(f); n > 0 && f[n-1][0] == '~' {
		if s.At, err = number(f[n-1][1:], "time of a step"); err != nil {
			return s, err
		}
		f = f[:n-1]
	}
	if len(f) == 0 {
		return s, errors.New("an empty step")
	}
	kind, err := index(stepNames[:], f[0], "step")
	if err != nil {
		return s, err
	}
	s.Kind, f = StepKind(kind), f[1:]
	switch s.Kind {
	case StepSend:
		if len(f) != 2 {
			return s, errors.New("want send KEY VALUE[@OFFSET]")
		}
		if s.Key, err = parseKey(f[0]); err == nil {
			s.Value, s.Offset, err = parseRecord(f[1])
		}
	case StepPoll:
		s.Reads, err = parseReads(f)
	case StepOffsets:
		if len(f) == 0 {
			return s, errors.New("want offsets GROUP KEY@OFFSET…")
		}
		s.Group = f[0]
		s.Next, err = parsePositions(f[1:])
	default:
		if len(f) > 0 {
			err = fmt.Errorf("%v takes no arguments, got %q", s.Kind, f)
		}
	}
	return s, err
}

func parseReads(f []string) ([]Read, error) {
	var reads []Read
	for _, part := range split(f, ",") {
		if len(part) == 0 {
			return nil, errors.New("an empty list of records")
		}
		k, err := parseKey(part[0])
		if err != nil {
			return nil, err
		}
		for _, t := range part[1:] {
			v, o, err := parseRecord(t)
			if err != nil {
				return nil, err
			}
			if o == Unknown {
				return nil, fmt.Errorf("record %s was read without an offset", t)
			}
			reads = append(reads, Read{k, v, o})
		}
	}
	return reads, nil
}

func parseMarks(parts [][]string) ([]Mark, error) {
	var marks []Mark
	for _, f := range parts {
		if len(f) != 4 {
			return nil, fmt.Errorf("want KEY START STABLE HIGH, got %q", f)
		}
		m := Mark{}
		var err error
		if m.Key, err = parseKey(f[0]); err != nil {
			return nil, err
		}
		for i, to := range []*int64{&m.Start, &m.Stable, &m.High} {
			if *to, err = number(f[i+1], "watermark"); err != nil {
				return nil, err
			}
		}
		marks = append(marks, m)
	}
	return marks, nil
}

func parseKeys(f []string) ([]Key, error) {
	var keys []Key
	for _, t := range f {
		k, err := parseKey(t)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func parseKey(t string) (Key, error) {
	i := strings.LastIndexByte(t, '/')
	if i <= 0 {
		return Key{}, fmt.Errorf("%q is no TOPIC/PARTITION", t)
	}
	p, err := strconv.ParseInt(t[i+1:], 10, 32)
	if err != nil || p < 0 {
		return Key{}, fmt.Errorf("%q is no TOPIC/PARTITION", t)
	}
	return Key{t[:i], int32(p)}, nil
}

func parsePositions(f []string) ([]Position, error) {
	var ps []Position
	for _, t := range f {
		name, at, found := strings.Cut(t, "@")
		k, err := parseKey(name)
		if err != nil || !found {
			return nil, fmt.Errorf("%q is no KEY@OFFSET", t)
		}
		o, err := number(at, "offset")
		if err != nil {
			return nil, err
		}
		ps = append(ps, Position{k, o})
	}
	return ps, nil
}

func parseRecord(t string) (value, offset int64, err error) {
	v, o, found := strings.Cut(t, "@")
	offset = Unknown
	if value, err = number(v, "value"); err == nil && found {
		offset, err = number(o, "offset")
	}
	return value, offset, err
}

func number(t, what string) (int64, error) {
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q is no number", what, t)
	}
	return n, nil
}

func index(names []string, t, what string) (int, error) {
	for i, n := range names {
		if n == t {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no %s is called %q", what, t)
}

// split cuts words at a separator that stands alone; no words are no parts.
func split(f []string, sep string) [][]string {
	if len(f) == 0 {
		return nil
	}
	var parts [][]string
	from := 0
	for i, t := range f {
		if t == sep {
			parts = append(parts, f[from:i])
			from = i + 1
		}
	}
	return append(parts, f[from:])
}
