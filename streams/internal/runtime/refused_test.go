package runtime_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
)

// What a broker refuses for good ends the run with its reason: the same again
// would be refused again, for ever.
func TestWhatIsRefusedForGoodEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(j *job, o *task.Out)
		want  error
	}{
		{"too large", func(_ *job, o *task.Out) { o.Value = bytes.Repeat([]byte("x"), 3<<20) }, kerr.MessageTooLarge},
		{"no such topic", func(_ *job, o *task.Out) { o.Topic = "no topic\x00 has this name" }, kerr.InvalidTopicException},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 20*time.Second)
			j.label()
			j.send(100)
			app := j.topology()
			make := app.Subs[1].New
			app.Subs[1].New = func(e task.Env) (task.Task, error) {
				emit := e.Emit
				e.Emit = func(o *task.Out) error {
					if strings.HasSuffix(string(o.Value), " 2") {
						bad := *o
						c.spoil(j, &bad)
						o = &bad
					}
					return emit(o)
				}
				return make(e)
			}
			starts := 0
			o := j.options(t.TempDir())
			o.Workers = 1
			o.OnState = func(_ int, s runtime.State) {
				if s == runtime.Restoring {
					starts++
				}
			}
			err := runtime.Run(j.ctx, app, j.cluster, o)
			if !errors.Is(err, c.want) {
				t.Errorf("run ended with %v, want %v", err, c.want)
			}
			if starts > 3 {
				t.Errorf("started %d times", starts)
			}
		})
	}
}
