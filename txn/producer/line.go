package producer

// line is entries in an order, linked through the entries themselves. An entry is in one line at a time: that of the open
// transactions, or that of the quiet producers.
type line struct{ head, tail *entry }

// after puts e, which is in no line, behind at; nil is the front.
func (l *line) after(at, e *entry) {
	e.prev = at
	if at == nil {
		e.next, l.head = l.head, e
	} else {
		e.next, at.next = at.next, e
	}
	if e.next == nil {
		l.tail = e
	} else {
		e.next.prev = e
	}
}

func (l *line) remove(e *entry) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}
