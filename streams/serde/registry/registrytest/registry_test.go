package registrytest_test

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/millrace/millrace/streams/serde/registry/registrytest"
)

func record(fields string) string {
	return `{"type":"record","name":"R","fields":[` + fields + `]}`
}

const (
	a        = `{"name":"a","type":"int"}`
	b        = `{"name":"b","type":"int"}`
	bDefault = `{"name":"b","type":"int","default":0}`
)

// post sends a schema and returns the status and the answer.
func post(t *testing.T, url, text string) (int, string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"schema": text})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(url, "application/vnd.schemaregistry.v1+json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(got)
}

// TestLevels: what each level of compatibility lets pass, as Confluent documents it.
func TestLevels(t *testing.T) {
	t.Parallel()
	type change struct{ from, to string }
	add, addDefault := change{record(a), record(a + "," + b)}, change{record(a), record(a + "," + bDefault)}
	remove, removeDefault := change{record(a + "," + b), record(a)}, change{record(a + "," + bDefault), record(a)}
	for _, c := range []struct {
		level string
		change
		ok bool
	}{
		{"BACKWARD", add, false}, {"BACKWARD", addDefault, true}, {"BACKWARD", remove, true},
		{"FORWARD", add, true}, {"FORWARD", remove, false}, {"FORWARD", removeDefault, true},
		{"FULL", add, false}, {"FULL", addDefault, true}, {"FULL", remove, false}, {"FULL", removeDefault, true},
		{"NONE", add, true}, {"NONE", change{record(a), `"string"`}, true},
	} {
		r := registrytest.Start(t)
		r.Level("s", c.level)
		r.Add("s", "AVRO", c.from)
		status, answer := post(t, r.URL+"/subjects/s/versions", c.to)
		if (status == http.StatusOK) != c.ok || !c.ok && status != http.StatusConflict {
			t.Errorf("%s, from %s to %s: %d %s", c.level, c.from, c.to, status, answer)
		}
	}
}

// TestTransitive: without it only the latest version counts.
func TestTransitive(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]int{"BACKWARD": http.StatusOK, "BACKWARD_TRANSITIVE": http.StatusConflict} {
		r := registrytest.Start(t)
		r.Level("s", level)
		r.Add("s", "AVRO", record(a))
		r.Add("s", "AVRO", record(a+","+bDefault))
		if status, answer := post(t, r.URL+"/subjects/s/versions", record(a+","+b)); status != want {
			t.Errorf("%s: %d %s", level, status, answer)
		}
	}
}

// TestAnswers: numbers, versions and error codes as the interface has them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	for _, c := range []struct {
		path, text string
		status     int
		answer     string
	}{
		{"/subjects/s", record(a), 404, `{"error_code":40401,"message":"Subject 's' not found."}`},
		{"/subjects/s/versions", record(a), 200, `{"id":1}`},
		{"/subjects/s/versions", record(a), 200, `{"id":1}`},
		{"/subjects/s/versions", record(a + "," + bDefault), 200, `{"id":2}`},
		{"/subjects/other/versions", record(a), 200, `{"id":1}`},
		{"/subjects/s", record(b), 404, `{"error_code":40403,"message":"Schema not found"}`},
		{"/subjects/s", `"string"`, 404, `{"error_code":40403,"message":"Schema not found"}`},
	} {
		status, answer := post(t, r.URL+c.path, c.text)
		var got, want any
		if json.Unmarshal([]byte(answer), &got) != nil || json.Unmarshal([]byte(c.answer), &want) != nil ||
			status != c.status || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.text, status, answer, c.status, c.answer)
		}
	}
	if status, answer := post(t, r.URL+"/subjects/s/versions", `{"type":`); status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", status, answer)
	}
}
