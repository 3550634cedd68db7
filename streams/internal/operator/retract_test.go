package operator

import (
	"testing"

	"github.com/millrace/millrace/streams/serde"
)

func FuzzChange(f *testing.F) {
	s := ChangeSerde(serde.String)
	for _, c := range []Change[string]{{Old: "a", HasOld: true}, {New: "b", HasNew: true}, {Old: "", New: "b", HasOld: true, HasNew: true},
		{Old: "long enough for two bytes", New: "", HasOld: true, HasNew: true}} {
		b, err := s.Append([]byte("x"), c)
		if err != nil {
			f.Fatal(err)
		}
		back, err := s.Decode(b[1:])
		if err != nil || back != c {
			f.Fatalf("%+v comes back as %+v, %v", c, back, err)
		}
		f.Add(b[1:])
	}
	f.Add([]byte{3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := s.Decode(b)
		if err != nil {
			return
		}
		again, err := s.Append(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := s.Decode(again); err != nil || back != c {
			t.Errorf("%x is %+v, which comes back as %+v, %v", b, c, back, err)
		}
	})
}
