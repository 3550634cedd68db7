package state

// expireWindows is Expire for whole windows. The rows in memory come first, in the
// order in which they came; then those that only the image has.
func (o *Overlay) expireWindows(from, to []byte) error {
	var unsure []*entry // created, and nobody has asked the image for it yet
	for _, w := range o.table.windows.between(from, to) {
		for _, e := range w.entries {
			switch {
			case e.committed.kind == present:
				o.change(e, nil, deleted)
			case e.committed.kind == unknown && !e.fresh:
				unsure = append(unsure, e)
			case e.open.kind == present:
				o.change(e, nil, forgotten)
			}
		}
	}
	if !o.absent(from) {
		for row, err := range o.image.Range(from, to) {
			if err != nil {
				return o.fail("expire", err)
			}
			if e := o.table.get(row.Key); e == nil || e.committed.kind == unknown {
				o.write(row.Key, nil, deleted)
			}
		}
	}
	for _, e := range unsure {
		if e.open.kind == present {
			o.change(e, nil, forgotten)
		}
	}
	return nil
}
