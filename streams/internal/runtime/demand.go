package runtime

// demand asks for the inputs that tasks cannot go on without. It matters when other
// inputs have filled the memory: what is wanted is fetched all the same, a batch at a
// time. The worker calls it when it finds nothing to process.
func (w *worker) demand() {
	if !w.reader.Full() {
		return
	}
	for _, a := range w.tasks {
		for _, in := range a.inputs {
			if _, ok := in.feed.Head(); !ok {
				w.reader.Want(in.feed)
			}
		}
	}
}
