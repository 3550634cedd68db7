package producer

// Last is what a producer wrote last, as compaction asks: the batch that ends there, or if there is none the last marker, must not
// go as a whole.
type Last struct {
	Offset int64 // of its last record under its epoch, -1 if it has written none
	Epoch  int16
}

// Last is the last offset of every producer. The map belongs to the caller.
func (t *Table) Last() map[int64]Last {
	out := make(map[int64]Last, len(t.entries))
	for id, e := range t.entries {
		out[id] = Last{e.lastOffset(), e.epoch}
	}
	return out
}

// LastOffset is that of a producer's last record under its epoch, -1 if there is none.
func (t *Table) LastOffset(id int64) int64 {
	if e := t.get(id); e != nil {
		return e.lastOffset()
	}
	return -1
}
