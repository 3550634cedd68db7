package stage

import (
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams"
)

// Input are records for one topic.
type Input struct {
	topic  string
	encode func(*streams.App) ([]*kgo.Record, error)
}

// Record is one record of an input: a value of null is a tombstone.
type Record[K, V any] struct {
	At    time.Time
	Key   K
	Value V
}

// In writes records to a topic, by the application's serdes.
func In[K, V any](topic string, records ...Record[K, V]) Input {
	return Input{topic, func(app *streams.App) ([]*kgo.Record, error) {
		var all []*kgo.Record
		for _, r := range records {
			key, err := encode(app, r.Key)
			if err != nil {
				return nil, err
			}
			value, err := encode(app, r.Value)
			if err != nil {
				return nil, err
			}
			all = append(all, &kgo.Record{Timestamp: r.At, Key: key, Value: value})
		}
		return all, nil
	}}
}

// encode is a key or value as the application writes it; a nil pointer is null.
func encode[T any](app *streams.App, v T) ([]byte, error) {
	if p := reflect.ValueOf(&v).Elem(); p.Kind() == reflect.Pointer && p.IsNil() {
		return nil, nil
	}
	s, err := app.Serde[T]()
	if err != nil {
		return nil, err
	}
	return s.Append([]byte{}, v)
}

// Output are the results in one topic.
type Output struct {
	topic string
	want  int
	line  func(*streams.App, *kgo.Record) (string, error)
}

// Out prints each result of a topic as a line; want is how many there will be. A
// null value comes as the zero value, which for a pointer is nil.
func Out[K, V any](topic string, want int, line func(streams.Record[K, V]) string) Output {
	return Output{topic, want, func(app *streams.App, in *kgo.Record) (string, error) {
		r := streams.Record[K, V]{Time: in.Timestamp.UTC()}
		for _, h := range in.Headers {
			r.Headers = append(r.Headers, streams.Header{Key: h.Key, Value: h.Value})
		}
		if err := decode(app, in.Key, &r.Key); err != nil {
			return "", err
		}
		if err := decode(app, in.Value, &r.Value); err != nil {
			return "", err
		}
		return line(r), nil
	}}
}

func decode[T any](app *streams.App, b []byte, v *T) error {
	if b == nil {
		return nil
	}
	s, err := app.Serde[T]()
	if err == nil {
		*v, err = s.Decode(b)
	}
	return err
}
