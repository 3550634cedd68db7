package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/avro"
	"github.com/millrace/millrace/streams/serde/registry"
	"github.com/millrace/millrace/streams/serde/registry/registrytest"
)

// TestOneRequest: many goroutines, many records, one question to the registry.
func TestOneRequest(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	r.Add("orders-value", "AVRO", orderV1)
	s := on("orders", registry.Of(open(t, registry.Config{URLs: []string{r.URL}}), avro.New[order1](orderV1)))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				b, err := s.Append(nil, order1{"ann", 1})
				if err != nil {
					t.Error(err)
					return
				}
				if v, err := s.Decode(b); err != nil || v.User != "ann" {
					t.Error(v, err)
				}
			}
		})
	}
	all.Wait()
	if got := fmt.Sprint(r.Requests()); got != "[POST /subjects/orders-value GET /schemas/ids/1]" {
		t.Errorf("requests %s", got)
	}
}

// TestDownAtTheStart: Open does not ask, Prepare does, and says where it asked.
func TestDownAtTheStart(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	r.Stop()
	client := open(t, registry.Config{URLs: []string{r.URL}, User: "ann", Password: "s3cret", Timeout: 50 * time.Millisecond})
	s := on("orders", registry.Of(client, avro.New[order1](orderV1), registry.AutoRegister()))
	err := s.(serde.Prepared).Prepare(context.Background())
	if !errors.Is(err, serde.ErrUnavailable) || !strings.Contains(err.Error(), r.URL) || !strings.Contains(err.Error(), "subject orders-value") {
		t.Errorf("%v", err)
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error tells the password: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.(serde.Prepared).Prepare(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a start that is given up: %v", err)
	}
}

// TestDownAtRun: what is known goes on, what is new is unavailable, and works when
// the registry is back.
func TestDownAtRun(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	client := open(t, registry.Config{URLs: []string{r.URL}, Timeout: 200 * time.Millisecond})
	s := on("orders", registry.Of(client, avro.New[order1](orderV1), registry.AutoRegister()))
	b := encode(t, s, order1{"ann", 1})
	wantValue(t, s, b, order1{"ann", 1})
	id := r.Add("orders-value", "AVRO", orderV2)

	r.Fail(func(*http.Request) int { return http.StatusServiceUnavailable })
	wantValue(t, s, b, order1{"ann", 1})
	encode(t, s, order1{"bob", 1})
	newer := append([]byte{0, 0, 0, 0, byte(id)}, "\x06ann\x02\x02x"...)
	_, err := s.Decode(newer)
	if !errors.Is(err, serde.ErrUnavailable) || !strings.Contains(err.Error(), "schema 2: registry "+r.URL) {
		t.Errorf("%v", err)
	}
	r.Fail(nil)
	wantValue(t, s, newer, order1{"ann", 1})
}

// TestPassingFailures: a look-up outlives errors that pass within its time.
func TestPassingFailures(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	left := []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusBadGateway}
	r.Fail(func(*http.Request) int {
		if len(left) == 0 {
			return 0
		}
		status := left[0]
		left = left[1:]
		return status
	})
	client := open(t, registry.Config{URLs: []string{r.URL}, Timeout: time.Minute})
	encode(t, on("orders", registry.Of(client, avro.New[order1](orderV1), registry.AutoRegister())), order1{"ann", 1})
}

// TestSecondAddress: the first may be down.
func TestSecondAddress(t *testing.T) {
	t.Parallel()
	gone, r := registrytest.Start(t), registrytest.Start(t)
	gone.Stop()
	client := open(t, registry.Config{URLs: []string{gone.URL, r.URL + "/"}, Timeout: time.Minute})
	encode(t, on("orders", registry.Of(client, avro.New[order1](orderV1), registry.AutoRegister())), order1{"ann", 1})
}

// TestUnknownNumber: a broken producer's records do not become as many requests.
func TestUnknownNumber(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	s := on("orders", registry.Of(open(t, registry.Config{URLs: []string{r.URL}}), avro.New[order1](orderV1)))
	for range 100 {
		_, err := s.Decode([]byte("\x00\x00\x00\x00\x07x"))
		if !errors.Is(err, registry.ErrUnknownSchema) || errors.Is(err, serde.ErrUnavailable) || !strings.Contains(err.Error(), "7") {
			t.Fatal(err)
		}
	}
	if n := len(r.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestUserAndPassword(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	r.Protect("ann", "s3cret")
	inURL := strings.Replace(r.URL, "http://", "http://ann:s3cret@", 1)
	for _, c := range []registry.Config{
		{URLs: []string{r.URL}, User: "ann", Password: "s3cret"},
		{URLs: []string{inURL}},
	} {
		encode(t, on("orders", registry.Of(open(t, c), avro.New[order1](orderV1), registry.AutoRegister())), order1{"ann", 1})
		for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%v", &c)} {
			if strings.Contains(text, "s3cret") || !strings.Contains(text, "registry http://127.0.0.1") {
				t.Errorf("the configuration prints as %s", text)
			}
		}
	}
	wrong := open(t, registry.Config{URLs: []string{r.URL}, User: "ann", Password: "wr0ng", Timeout: time.Minute})
	_, err := on("orders", registry.Of(wrong, avro.New[order1](orderV1))).Append(nil, order1{})
	// It says nothing about the record: a handler must not throw that away.
	if !errors.Is(err, serde.ErrUnavailable) || !strings.Contains(err.Error(), "refuses the user: status 401") || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("%v", err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]registry.Config{
		"registry: URLs is empty, at least one is needed":                                         {},
		"registry: URLs[0] is localhost:8081, must begin with http:// or https:// and a host":     {URLs: []string{"localhost:8081"}},
		"registry: URLs[0] is ftp://u:xxxxx@h, must begin with http:// or https:// and a host":    {URLs: []string{"ftp://u:s3cret@h"}},
		"registry: URLs[0] is not a URL":                                                          {URLs: []string{"http://u:s3cret@h\x7f"}},
		"registry: URLs[1] has a user: only the first may":                                        {URLs: []string{"http://a", "http://u:s3cret@h"}},
		"registry: the user is given twice, in User and in URLs[0]":                               {URLs: []string{"http://u:s3cret@h"}, User: "u"},
		"registry: Password is set without User":                                                  {URLs: []string{"http://a"}, Password: "s3cret"},
		"registry: User and Token are both set":                                                   {URLs: []string{"http://a"}, User: "u", Token: "s3cret"},
		"registry: Timeout is 2m0s, must be between 1ms and 1m0s":                                 {URLs: []string{"http://a"}, Timeout: 2 * time.Minute},
		"registry: URLs is empty, at least one is needed\nregistry: Password is set without User": {Password: "s3cret"},
	} {
		if _, err := registry.Open(c); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", c, err, want)
		}
	}
}

// TestAllocations: a record costs what its format costs.
func TestAllocations(t *testing.T) {
	r := registrytest.Start(t)
	plain := avro.New[order1](orderV1)
	s := on("orders", registry.Of(open(t, registry.Config{URLs: []string{r.URL}}), plain, registry.AutoRegister()))
	framed, bare, buf := encode(t, s, order1{"ann", 1}), encode(t, serde.Serde[order1](plain), order1{"ann", 1}), make([]byte, 0, 64)
	allocs := func(s serde.Serde[order1], b []byte) float64 {
		return testing.AllocsPerRun(200, func() {
			if _, err := s.Append(buf, order1{"ann", 1}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Decode(b); err != nil {
				t.Fatal(err)
			}
		})
	}
	wantValue(t, s, framed, order1{"ann", 1})
	if got, want := allocs(s, framed), allocs(plain, bare); got > want {
		t.Errorf("%v allocations with a registry, %v without", got, want)
	}
}
