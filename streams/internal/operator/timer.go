package operator

// fire calls what is due at now, in order of due times. What becomes due meanwhile
// is called as well.
func (t *Task) fire(clock int, nowMs int64) error {
	for {
		var next timer
		at := int64(never)
		for _, x := range t.timers[clock] {
			if d := x.due(); d <= nowMs && d < at {
				next, at = x, d
			}
		}
		if next == nil {
			return nil
		}
		if err := t.callTimer(next, nowMs); err != nil {
			return err
		}
	}
}

// callTimer runs one timer; its panics end there.
func (t *Task) callTimer(x timer, nowMs int64) (err error) {
	t.nowMs = nowMs
	func() {
		defer t.recovered(&err)
		err = x.call(nowMs)
	}()
	if err == nil {
		err = t.fatal
	}
	return err
}

// Tick implements task.Task.
func (t *Task) Tick(nowMs int64) error {
	if t.failed == nil {
		t.failed = t.fire(WallClock, nowMs)
	}
	return t.failed
}

// NextTick implements task.Task.
func (t *Task) NextTick() int64 {
	at := int64(never)
	for _, x := range t.timers[WallClock] {
		at = min(at, x.due())
	}
	return at
}

// wallMs is the wall clock.
func (t *Task) wallMs() int64 {
	if t.env.Now == nil {
		return 0
	}
	return t.env.Now()
}

// moment is the time that user code is running for: that of the record at hand or
// what the timer was called with.
func (t *Task) moment() int64 {
	if t.current != nil {
		return t.current.TimeMs
	}
	return t.nowMs
}

// regular is a function that is called at each start + n*interval. Times that were
// missed are not made up for.
type regular struct {
	site       *Site
	intervalMs int64
	nextMs     int64
	fn         func(nowMs int64) error
}

func (x *regular) due() int64 { return x.nextMs }

func (x *regular) call(nowMs int64) error {
	x.nextMs += (nowMs-x.nextMs)/x.intervalMs*x.intervalMs + x.intervalMs
	x.site.enter()
	err := x.fn(nowMs)
	x.site.leave()
	if err != nil {
		return x.site.once(err)
	}
	return nil
}
