package runtime

import "time"

// report tells of what goes on.
func (k *keeper) report() {
	for _, x := range k.kept {
		if x.busy || x.takeover == nil {
			continue
		}
		k.tell(x, false)
	}
}

// tell tells the user how far the stores of a task are, and the log at times.
func (k *keeper) tell(x *kept, done bool) {
	t := x.takeover
	for _, o := range t.opened {
		if o.job == nil {
			continue
		}
		j := o.job
		if !done && !t.copy && time.Since(x.logged) > logEvery {
			t.log.Info("restoring", "store", o.spec.Name, "topic", j.Part.Topic, "at", j.Position(), "end", j.End, "records", j.Restored, "bytes", j.Bytes)
		}
		if k.onRestore != nil {
			k.onRestore(Restored{
				Worker: k.worker, Task: t.name(), Store: o.spec.Name, Topic: j.Part.Topic, Partition: j.Part.Partition,
				Records: j.Restored, Bytes: j.Bytes, Remaining: j.Remaining(), Done: done, Copy: t.copy, Rebuilt: j.Rebuilt,
				Took: time.Since(x.began),
			})
		}
	}
	if time.Since(x.logged) > logEvery {
		x.logged = time.Now()
	}
}

// logEvery is how often a restore is in the log.
const logEvery = 10 * time.Second
